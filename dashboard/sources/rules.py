"""What a table of an engine kind is made of: rules that give names and labels a meaning. Reads nothing itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.models import CacheTier, Series

Metric = Series.Metric


@dataclass(frozen=True)
class TierLabel:
    """Which tier a label's value means; a value that the table does not know is not guessed."""

    label: str
    tiers: Mapping[str, str]
    default: str = CacheTier.UNATTRIBUTED

    def tier(self, labels: Mapping[str, str]) -> str:
        return self.tiers.get(labels.get(self.label, ""), self.default)


@dataclass(frozen=True)
class FixedTier:
    """The name alone tells the tier; "" where the fact has none."""

    name: str = ""

    def tier(self, labels: Mapping[str, str]) -> str:
        return self.name


GPU, CPU, DISK, REMOTE, UNATTRIBUTED = (FixedTier(tier) for tier in CacheTier.values)


@dataclass(frozen=True)
class Rule:
    """Samples called `name` (canonical) with the labels `where` add up to `metric`, by engine, model, tier, detail.

    Where `whose_label` is given, too, the detail is both, apart by a space: "4096 acme".
    Labels that are not named anywhere are summed over. Those in `same` repeat one fact (each tensor-parallel rank tells
    the size of the same cache): the largest is taken. What is stored is the sample times `scale`, as an integer; with
    `value_label` the number is in that label instead (an info metric), and a label without a number tells nothing.
    `needs` and `lacks` are names that the text must have, or have none of, for the rule to hold.
    """

    name: str
    metric: Metric
    tier: TierLabel | FixedTier = FixedTier()
    detail_label: str = ""
    whose_label: str = ""
    where: tuple[tuple[str, str], ...] = ()
    scale: int = 1
    same: tuple[str, ...] = ()
    value_label: str = ""
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(name) == value for name, value in self.where)

    def holds(self, names: frozenset[str]) -> bool:
        """Whether a text with these canonical names can be read by this rule."""
        return names.issuperset(self.needs) and names.isdisjoint(self.lacks)


@dataclass(frozen=True)
class Adapter:
    """One kind of engine. Its computed tokens are "told", "derived" (prompt − Σ hits) or "unknown" where not told.

    Of `engine_labels` and `model_labels` the first that a sample has names its engine and its model.
    """

    kind: str
    marks: tuple[str, ...]  # canonical names (a trailing * is a prefix); any of them tells this kind
    rules: tuple[Rule, ...]
    computed: str = "derived"
    engine_labels: tuple[str, ...] = ("engine",)
    model_labels: tuple[str, ...] = ("model_name",)
    note: str = ""  # what a person should know of its numbers
    note_of: tuple[str, ...] = ()  # said of texts that have any of these names; () is of all
