"""`manage.py addsource NAME URL [--kind auto] [--mapping NAME] [--selector …] [--interval 10]`: watches an engine."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from dashboard import valkey
from dashboard.management.refusals import sentence
from dashboard.management.typed_access import HELP, typed_access
from dashboard.models import Mapping, Source
from dashboard.selectors.source_places import read_twice
from dashboard.services.source_trial import try_source
from dashboard.services.sources import add_source
from dashboard.sources.tables import ADAPTERS

_KINDS = [Source.Kind.AUTO.value, *ADAPTERS, Source.Kind.MAPPING.value]


class Command(BaseCommand):
    help = "Watches another engine: its metrics text, or what a Prometheus has of it, is read and recorded from now on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="How the engine is called on pages.")
        parser.add_argument("url", help="Where its metrics text is, like http://gpu-7:8000/metrics, or a Prometheus.")
        parser.add_argument(
            "--selector",
            help='Of a Prometheus: which series are its, like {instance="gpu-7:8000"}. ' + HELP,
        )
        parser.add_argument("--kind", default=Source.Kind.AUTO.value, choices=_KINDS)
        parser.add_argument("--mapping", default="", help="The mapping to read it by, for the kind mapping.")
        parser.add_argument(
            "--interval", type=int, default=10, help="Seconds between two scrapes (default: %(default)s)."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["selector"] == "":  # of a shell's variable, say: without it the Prometheus' own text would be read
            raise CommandError('--selector is empty; expected labels like {instance="gpu-7:8000"}.')
        try:
            source = add_source(
                options["name"],
                options["url"],
                kind=options["kind"],
                interval_seconds=options["interval"],
                now=timezone.now(),
                mapping=_mapping(options["mapping"]),
                selector=options["selector"] or "",
                access=typed_access() if options["selector"] else None,
            )
        except ValidationError as error:
            raise CommandError(sentence(error)) from None
        read = "read from a Prometheus" if source.selector else "scraped"
        told = f"{source.name} is {read} every {source.interval_seconds} s{_told_now(source)}"
        self.stdout.write(" ".join(filter(None, [told, read_twice(source)])))


def _told_now(source: Source) -> str:
    """The rest of the sentence: as what it is read. Where nothing can be read there yet, why; where an engine answers,
    what is odd about how a Prometheus has it.
    """
    trial = try_source(source, now=timezone.now(), connection=valkey.client())
    if not trial.engines:
        return " ".join([". Nothing can be read there yet:", *(trial.problems or ["no engine is told."])])
    kind = f", as {trial.kind}" if source.kind == Source.Kind.AUTO else ""
    return " ".join([f"{kind}.", *(trial.problems if source.selector else ())])


def _mapping(name: str) -> Mapping | None:
    found = Mapping.objects.filter(name=name).first() if name else None
    if name and found is None:
        raise CommandError(f"There is no mapping “{name}”; make it in the admin under Mappings.")
    return found
