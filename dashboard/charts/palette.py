"""The colour and the word of every place a prompt token can come from; the same in charts, tiles, tables and chat.

Near Okabe and Ito's hues, which people with any colour vision tell apart, each with a contrast of at least 3:1 against
both the light and the dark ground (tests/dashboard/test_charts_palette.py computes both).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.models import CacheTier


@dataclass(frozen=True)
class Look:
    """How one origin of prompt tokens is shown. `pattern` is a Plotly bar pattern, so that colour is never alone."""

    label: str
    colour: str
    pattern: str = ""


COMPUTED = "computed"
NO_TIER = "none"
UNTOLD = "untold"  # whether hit or computed: LMCache's server, for one, does not see the gpu. Drawn as bare ground

LOOKS: dict[str, Look] = {
    CacheTier.GPU: Look("gpu", "#009470"),
    CacheTier.CPU: Look("cpu", "#1f7fc4"),
    CacheTier.DISK: Look("disk", "#d9661f"),
    CacheTier.REMOTE: Look("remote", "#873fcf"),
    CacheTier.UNATTRIBUTED: Look("unattributed", "#94801f", "."),
    COMPUTED: Look("computed", "#7f8896", "/"),
    NO_TIER: Look("no tier read", "#7f8896"),
}
# Of tenants, in the order in which they are drawn: at least as far apart as the tiers' for any kind of colour vision.
TENANT_LOOKS = (
    Look("", "#5668bf"),
    Look("", "#bf3030"),
    Look("", "#a68c08"),
    Look("", "#793df2", "\\"),
    Look("", "#a6896c", "x"),
    Look("", "#7c87bf", "."),
)
TIER_ORDER = tuple(CacheTier.values)


def label_of(origin: str) -> str:
    return "not told" if origin == UNTOLD else LOOKS[origin].label


def legend(origins: Iterable[str]) -> list[dict[str, str]]:
    return [{"origin": origin, "label": label_of(origin)} for origin in origins]


def with_the_rest(counted: Iterable[tuple[str, int | None]], prompt: int) -> list[tuple[str, int]]:
    """Origins that are told, and last the prompt's tokens of which none is; nothing where no origin is told at all."""
    told = [(origin, tokens) for origin, tokens in counted if tokens is not None]
    rest = prompt - sum(tokens for _, tokens in told)
    return [*told, *([(UNTOLD, rest)] if told and rest > 0 else [])]


def tiers_in(by_tier: object) -> list[str]:
    """The tiers that a series names, fastest first."""
    present = set(by_tier) if isinstance(by_tier, dict) else set()
    return [tier for tier in TIER_ORDER if tier in present]
