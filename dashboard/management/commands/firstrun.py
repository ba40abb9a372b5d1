"""manage.py firstrun: prepares the database and what is kept beside it, before any process starts."""

import os
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks.registry import registry
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from dashboard.firstrun import prepare
from dashboard.secret_files import PRIVATE_UMASK
from dashboard.servers import ServerError, ensure_database, ensure_valkey


class Command(BaseCommand):
    help = "Migrate, collect static files, and make the administrator and the default API key where they are missing."
    requires_system_checks: list[str] = []  # here each is one line for the person who waits for the start

    def handle(self, *args: Any, verbosity: int, **options: Any) -> None:
        os.umask(PRIVATE_UMASK)
        problems = [*self._check()]
        try:
            if not problems:
                self._prepare(verbosity)
        except (ServerError, ValueError) as error:
            problems.append(str(error))
        except DatabaseError as error:
            problems.append(f"The database cannot be used: {error}.")
        except OSError as error:
            problems.append(f"TIERSCOPE_HOME ({settings.TIERSCOPE_HOME}) cannot be used: {error.strerror}.")
        if problems:
            raise SystemExit("\n".join(problems))

    def _check(self) -> Iterator[str]:
        """The errors; warnings are said and nothing more."""
        for message in _found():
            text = " ".join(filter(None, [message.msg, message.hint]))
            if message.is_serious():
                yield text
            elif message.level >= checks.WARNING:
                self.stderr.write(f"Warning: {text}")

    def _prepare(self, verbosity: int) -> None:
        ensure_valkey()
        ensure_database()
        for news in prepare():
            if verbosity:
                self.stdout.write(news)


def _found() -> Iterator[checks.CheckMessage]:
    """By all checks but those of the addresses, which no setting changes: importing all pages takes 0.2 s of a core."""
    for check in registry.get_checks():
        if checks.Tags.urls not in check.tags:
            yield from check(app_configs=None, databases=None)
