"""Sources that read one place: pages would add up twice what an engine told once. Reads only."""

from dashboard.models import Source


def read_twice(source: Source) -> str:
    """A sentence where another source reads the same as this one; "" where none does, or as another kind of engine."""
    there = Source.objects.filter(url=source.url, selector=source.selector, mapping=source.mapping)
    others = there.exclude(pk=source.pk).filter(is_enabled=True, gone_at=None, removed_at=None).order_by("name")
    names = [other.name for other in others if other.kind == source.kind or other.read_as == source.read_as]
    if not source.url or not names:
        return ""
    return (
        f"“{names[0]}” reads the same address as this kind of engine: all that it tells is counted twice. Remove one."
    )
