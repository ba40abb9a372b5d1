"""The table of forms: what each is told by, in which unit its times are, who reads a line of it.

Knows nothing about files.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tiers.traces import chats, kv_events, lookups, mooncake, plain
from tiers.traces.faults import Faults
from tiers.traces.fields import Told, WrongValueError
from tiers.traces.files import Line
from tiers.traces.request import LoadTokenizer, TraceError, TraceRequest
from tiers.traces.rows import Row, csv_fields, csv_rows, json_object, json_rows

Read = Callable[[Told, float], TraceRequest]
Reader = Callable[[LoadTokenizer | None, int], Read]


@dataclass(frozen=True)
class Form:
    """`told_by` are fields of a line that no other form has all of. `reader` is given a tokenizer and the tokens of a
    block, and raises ValueError where it cannot do without. `per_second` is the unit of `time_field`, 0 where a
    number's size tells it. `is_in_order`: lines of one file come by their times.
    """

    kind: str
    title: str
    told_by: frozenset[str]
    reader: Reader
    time_field: str = "timestamp"
    per_second: float = 1.0
    is_in_order: bool = True
    rows: Callable[[Iterator[Line], Faults], Iterator[Row]] = json_rows
    fields: Callable[[bytes], set[str]] = lambda line: set(json_object(line))

    def fits(self, line: bytes) -> bool:
        try:
            return self.told_by <= self.fields(line)
        except WrongValueError:
            return False


def _always(read: Read) -> Reader:
    return lambda load_tokenizer, block_tokens: read


class _Events(Form):
    def fits(self, line: bytes) -> bool:
        return kv_events.fits(line)


FORMS = (
    Form("mooncake", "Mooncake's", frozenset({"hash_ids"}), _always(mooncake.read), per_second=1000),
    Form("lmcache-lookups", "LMCache's lookup log", frozenset({"chunk_hashes"}), _always(lookups.read)),
    Form("chat", "chats with text", frozenset({"input", "output"}), chats.reader, per_second=0, is_in_order=False),
    Form("jsonl", "our own", frozenset({"block_ids"}), _always(plain.read), "time"),
    Form(
        *("csv", "our own as CSV", frozenset({"block_ids"}), _always(plain.read), "time"),
        rows=csv_rows,
        fields=lambda line: set(csv_fields(line)),
    ),
    _Events("vllm-kv-events", "vLLM's KV events", frozenset(), kv_events.reader),
)
KINDS = tuple(form.kind for form in FORMS)


def form_of(kind: str) -> Form:
    """Raises ValueError."""
    for form in FORMS:
        if form.kind == kind:
            return form
    raise ValueError(f"“{kind}” is no form of a trace; expected one of {', '.join(KINDS)}.")


def detect(first_lines: list[Line]) -> Form:
    """The form of the first line that has one. Raises TraceError about the first."""
    for line in first_lines:
        for form in FORMS:
            if form.fits(line.text):
                return form
    first = first_lines[0]
    try:
        json_object(first.text)
        problem = "none of the fields that a form is known by is there"
    except WrongValueError as error:
        problem = str(error).rstrip(".")
    known = ", ".join(f"“{'”, “'.join(sorted(form.told_by))}” ({form.title})" for form in FORMS if form.told_by)
    raise TraceError(f"{first.where}: {problem}; expected {known}.")
