"""`manage.py addsource NAME URL [--kind auto] [--interval 10]`: watches another engine from the next scrape on."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from dashboard.models import Source
from dashboard.services.sources import add_source
from dashboard.sources.tables import ADAPTERS


class Command(BaseCommand):
    help = "Watches another engine: its metrics text is scraped and recorded from now on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="How the engine is called on pages.")
        parser.add_argument("url", help="Where its metrics text is, like http://gpu-7:8000/metrics.")
        parser.add_argument("--kind", default=Source.Kind.AUTO.value, choices=[Source.Kind.AUTO.value, *ADAPTERS])
        parser.add_argument("--interval", type=int, default=10, help="Seconds between two scrapes.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            source = add_source(
                options["name"],
                options["url"],
                kind=options["kind"],
                interval_seconds=options["interval"],
                now=timezone.now(),
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        self.stdout.write(f"{source.name} is scraped every {source.interval_seconds} s.")
