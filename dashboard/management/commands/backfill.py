"""`manage.py backfill SOURCE PROMETHEUS --days 30`: imports a source's history, once however often."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from tqdm import tqdm

from dashboard.management.refusals import sentence
from dashboard.management.typed_access import HELP, typed_access
from dashboard.models import Backfill, Source
from dashboard.services.backfill import advance, check_answers, is_settling, plan, take_access

_MAX_DAYS = 9_000


class Command(BaseCommand):
    help = "Imports a watched engine's history from a Prometheus (or Thanos, Mimir, VictoriaMetrics) into its series."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", help="The name of a source.")
        parser.add_argument("url", help=f"The Prometheus, like http://prometheus:9090. {HELP}")
        parser.add_argument("--days", type=float, default=30, help="How far back (default: %(default)s).")
        parser.add_argument("--selector", default="", help="Which series are its; by default those of its host:port.")
        parser.add_argument(
            "--step", type=int, default=60, help="Seconds between two looks, 10 to 3600 (default: %(default)s)."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        source = Source.objects.filter(name=options["source"]).first()
        if source is None:
            raise CommandError(f"There is no source “{options['source']}”.")
        if not 0 < options["days"] <= _MAX_DAYS:
            raise CommandError(f"--days is {options['days']:g}; expected more than 0, and at most {_MAX_DAYS:,}.")
        wanted = Backfill(
            source=source,
            url=options["url"],
            selector=options["selector"] or source.selector or f'{{instance="{urlsplit(source.url).netloc}"}}',
            start_at=now - timedelta(days=options["days"]),
            end_at=now,
            step_seconds=options["step"],
            **typed_access(),
        )
        take_access(wanted)
        try:
            check_answers(wanted)
            planned = plan(wanted, now=now)
        except ValidationError as error:
            raise CommandError(sentence(error)) from None
        num_samples = sum(self._imported(backfill) for backfill in planned)
        if not num_samples and any(backfill.cursor_at > backfill.start_at for backfill in planned):
            raise CommandError(_nothing(wanted))
        told = f"{num_samples:,} samples were imported." if planned else "All of it is there already."
        rest = (
            "" if all(backfill.is_done for backfill in planned) else " The worker imports the last minute in a minute."
        )
        self.stdout.write(told + rest)

    def _imported(self, backfill: Backfill) -> int:
        with tqdm(total=100, desc=str(backfill), bar_format="{desc}: {bar} {n:.0f} %") as bar:
            while not backfill.is_done and not is_settling(backfill, timezone.now()):
                went_on = advance(backfill.pk, now=timezone.now())
                backfill.refresh_from_db()
                if not went_on:
                    raise CommandError(f"{backfill.last_error or 'A worker is on it.'} The worker goes on with it.")
                bar.update(100 * backfill.share - bar.n)
        return backfill.num_samples


def _nothing(wanted: Backfill) -> str:
    return (
        f"Nothing was imported: {wanted.url} has no series of this engine where {wanted.selector} since "
        f"{wanted.start_at:%Y-%m-%d %H:%M} UTC. Check the labels there (--selector), how far back it keeps them "
        f"(--days), and whether “{wanted.source}” is of the right kind."
    )
