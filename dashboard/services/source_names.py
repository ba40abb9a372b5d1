"""Keeps the names of watched sources and of embedded engines apart: pages add up what has one name. Reads no source."""

from itertools import count

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from dashboard.models import EngineRun, Series, Source, TierSetting
from dashboard.sources.reading import engine_name


def own_engines() -> frozenset[str]:
    """The names of the embedded engines: of those that ran here once, and of the one that this machine is to run."""
    return frozenset({settings.ENGINE_NAME, *TierSetting.objects.values_list("engine", flat=True)})


def check_name(name: str) -> None:
    """Raises ValidationError for an embedded engine's name: pages add up what has one name, whoever told it."""
    if name in own_engines():
        raise ValidationError({"name": f"“{name}” is an embedded engine: both would be added up. Choose another name."})


def give_way(engine: str) -> None:
    """There is an embedded engine of this name now: a source that has it is renamed, with its series and runs.

    Whatever is being read of it under the old name is not booked: its claim ends here.
    """
    with transaction.atomic():
        source = Source.objects.filter(name=engine).exclude(kind=Source.Kind.EMBEDDED).first()
        if source is None:
            return
        rename(source, _free_name(f"{engine}-watched"))


def rename(source: Source, name: str, *, before: str = "") -> None:
    """Its engines are called by the new name, with their series and runs: else their past would stay behind, be added
    to a later source of the old name, and what they counted meanwhile be lost. Ends the claim of who reads it.

    An engine of that name that it had before stays as it is: it once had the new name already.
    """
    before = before or source.name
    with transaction.atomic():
        for model in (Series, EngineRun):
            rows = model._default_manager.filter(source=source)
            there = set(rows.values_list("engine", flat=True))
            for old in there:
                new = engine_name(name, old.removeprefix(before).removeprefix("/"))
                if old.split("/")[0] == before and new not in there:
                    rows.filter(engine=old).update(engine=new)
        Source.objects.filter(pk=source.pk).update(name=name, due_at=timezone.now())


def _free_name(wish: str) -> str:
    taken = set(Source.objects.filter(name__startswith=wish).values_list("name", flat=True))
    return next(name for number in count(1) if (name := wish if number == 1 else f"{wish}-{number}") not in taken)
