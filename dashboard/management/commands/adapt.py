"""`manage.py adapt FILE [--kind auto]`: prints what an adapter makes of a metrics text, as JSON. Stores nothing."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard.models import Source
from dashboard.sources.detection import read
from dashboard.sources.exposition import MAX_BYTES, ExpositionError
from dashboard.sources.summary import summary
from dashboard.sources.tables import ADAPTERS


class Command(BaseCommand):
    help = "Prints which prompt and hit tokens, by tier, an engine's metrics text tells."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="The metrics text; - reads standard input.")
        parser.add_argument("--kind", default=Source.Kind.AUTO.value, choices=[Source.Kind.AUTO.value, *ADAPTERS])

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            adapted = read(_text(options["file"]), options["kind"])
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be read: {error.strerror or error}.") from None
        except ExpositionError as error:
            raise CommandError(str(error)) from None
        for remark in filter(None, (*adapted.problems, adapted.note)):
            self.stderr.write(remark)
        self.stdout.write(json.dumps(summary(adapted)))


def _text(name: str) -> str:
    """At most one byte more than is allowed is read: the parser then says that it is too much."""
    if name == "-":
        return sys.stdin.read(MAX_BYTES + 1)
    with Path(name).open(encoding="utf-8", errors="replace") as file:
        return file.read(MAX_BYTES + 1)
