"""Puts amounts into the series store by name, as the recorder would, for tests that know every number."""

from django.db import transaction

from dashboard.models import Series, Source
from dashboard.services import chunks
from dashboard.services.amounts import Amount
from dashboard.services.head import add_amounts
from dashboard.services.increases import create_series
from tests.dashboard.stores import empty
from tests.dashboard.told import moment

Fact = tuple[str, str, str]  # metric, cache_tier, detail


class AmountStore:
    """An empty store with one source."""

    def __init__(self) -> None:
        empty()
        self.source = Source.objects.create(name="s", kind="embedded")

    def series(self, fact: Fact, engine: str = "a", model_name: str = "m") -> Series:
        metric, tier, detail = fact
        create_series([(self.source.pk, engine, (model_name, metric, tier, detail))])
        return Series.objects.get(engine=engine, model_name=model_name, metric=metric, cache_tier=tier, detail=detail)

    def add(self, fact: Fact, at: int, value: int, engine: str = "a") -> None:
        series = self.series(fact, engine)
        with transaction.atomic():
            add_amounts([Amount(series.pk, at, value)])
        if at % 20 < 10:  # as if it was seen a while ago
            chunks.settle(now=moment(at + 2 * chunks.HEAD_SECONDS))

    def tell(self, at: int, facts: dict[Fact, int], engine: str = "a") -> None:
        """Also what is told and did not move."""
        for fact, value in facts.items():
            self.series(fact, engine)
            if value:
                self.add(fact, at, value, engine)
