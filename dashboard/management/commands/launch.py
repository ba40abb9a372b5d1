"""manage.py launch NAME: becomes one process of the Procfile."""

import os
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from dashboard.processes import NAMES, become
from dashboard.secret_files import PRIVATE_UMASK
from dashboard.spinning import spin_briefly


class Command(BaseCommand):
    help = "Become one of the processes that make up Tierscope: valkey, web, engine or worker."
    requires_system_checks: list[str] = []  # firstrun checked; four processes would do it again at every start

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", choices=NAMES)

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        os.umask(PRIVATE_UMASK)
        spin_briefly()
        # numba keeps what it has compiled beside the sources, so that it is compiled once, unless they are read-only.
        if not os.access(settings.BASE_DIR / "tiers" / "books", os.W_OK):
            os.environ.setdefault("NUMBA_CACHE_DIR", str(settings.TIERSCOPE_HOME / "compiled"))
        try:
            become(name)
        except OSError as error:
            if name != "valkey":
                raise
            raise CommandError(str(error)) from None  # there is no server, or its folder is somebody else's
