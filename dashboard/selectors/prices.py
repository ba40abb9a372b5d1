"""What memory and computing cost, as an admin typed it. Reads only; knows no default."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboard.models import Prices

HOURS_A_MONTH = 730  # of 8,760 a year


@dataclass(frozen=True)
class PriceList:
    """Dollars; what is not typed is None, or not in `gib_month` (by tier)."""

    gib_month: Mapping[str, float] = field(default_factory=dict)
    gpu_hour: float | None = None

    @property
    def is_empty(self) -> bool:
        return not self.gib_month and self.gpu_hour is None


def prices() -> PriceList:
    row = Prices.objects.order_by("pk").first() or Prices()
    typed = {tier: getattr(row, f"{tier}_gib_month") for tier in ("gpu", "cpu", "disk", "remote")}
    return PriceList(
        {tier: float(price) for tier, price in typed.items() if price is not None},
        None if row.gpu_hour is None else float(row.gpu_hour),
    )
