"""manage.py createapikey NAME: makes an API key and prints it, once."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard.services.api_keys import create_api_key


class Command(BaseCommand):
    help = "Make an API key for /v1 and print it. It is stored hashed and cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="who will use it, for example “ci” or “search team”")
        parser.add_argument("--tenant", default="", help="whose prompts it may reuse; without one the common pool's")

    def handle(self, *args: Any, name: str, tenant: str, **options: Any) -> None:
        try:
            _, key = create_api_key(name, tenant)
        except ValueError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(key)
