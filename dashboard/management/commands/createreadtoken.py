"""`manage.py createreadtoken NAME`: prints a new token for /api/v1 once, for scripts; people use the admin."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard.services.api_keys import create_read_token


class Command(BaseCommand):
    help = "Makes a token that reads numbers through /api/v1, and prints it. It cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what the admin lists it as")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        try:
            _, token = create_read_token(name)
        except ValueError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(token)
