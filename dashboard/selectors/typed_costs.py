"""What an admin typed about the costs of an engine that does not tell them. Reads only."""

from django.db.models import Exists, OuterRef

from dashboard.models import Series, Source
from dashboard.typed_costs import NOTHING_TYPED, TypedCosts, typed_costs


def typed_of(engine: str) -> TypedCosts:
    """By the source that it is read from; nothing where nobody typed anything."""
    typed = Source.objects.exclude(typed_prefill="", typed_loads="")
    sources = typed.filter(Exists(Series.objects.filter(source=OuterRef("pk"), engine=engine)))
    texts = sources.values_list("typed_prefill", "typed_loads").first()
    return typed_costs(*texts) if texts else NOTHING_TYPED
