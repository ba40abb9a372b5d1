"""manage.py firstrun: prepares the database and what is kept beside it, before any process starts."""

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from dashboard.firstrun import prepare
from dashboard.secret_files import PRIVATE_UMASK


class Command(BaseCommand):
    help = "Migrate, collect static files, and make the administrator and the default API key where they are missing."

    def handle(self, *args: Any, verbosity: int, **options: Any) -> None:
        os.umask(PRIVATE_UMASK)
        try:
            for news in prepare():
                if verbosity:
                    self.stdout.write(news)
        except (ValueError, OSError) as error:
            raise CommandError(str(error)) from None
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {error}") from None
