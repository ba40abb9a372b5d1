"""Block accesses of a trace's requests, whatever its form. Knows nothing about forms."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tiers.traces import TraceError, TraceRequest, open_trace
from tiers.whatif.accesses import Accesses, Prompt, collect


@dataclass(frozen=True)
class Names:
    """`of_request` int64 [R] is an index into `names`; `what` they are names of, like "tenant"."""

    what: str
    names: tuple[str, ...]
    of_request: NDArray[np.int64]

    def is_of(self, name: str) -> NDArray[np.bool_]:
        """Raises ValueError for a name that is not there."""
        if name not in self.names:
            known = ", ".join(f"“{each}”" for each in self.names[:20])
            raise ValueError(f"The trace has no {self.what} “{name}”; it has {known}.")
        found: NDArray[np.bool_] = self.of_request == self.names.index(name)
        return found


@dataclass(frozen=True)
class TracedAccesses:
    """Accesses with whose they are."""

    accesses: Accesses
    tenants: Names
    models: Names

    def of(self, *, tenant: str | None = None, model: str | None = None) -> Accesses:
        """The others' requests take their room in the cache, and are not counted. Raises ValueError."""
        is_counted = np.ones(self.accesses.num_requests, np.bool_)
        for names, name in ((self.tenants, tenant), (self.models, model)):
            if name is not None:
                is_counted &= names.is_of(name)
        of_blocks = np.repeat(is_counted, np.diff(self.accesses.starts))
        return replace(
            self.accesses,
            num_tokens=self.accesses.num_tokens * of_blocks,
            is_asked=self.accesses.is_asked & of_blocks,
            prompt_tokens=self.accesses.prompt_tokens * is_counted,
            is_counted=is_counted,
        )


def traced_accesses(requests: Iterable[TraceRequest]) -> TracedAccesses:
    tenants: dict[str, int] = {}
    models: dict[str, int] = {}
    of_tenant, of_model = array("q"), array("q")

    def prompts() -> Iterator[Prompt]:
        for request in requests:
            of_tenant.append(tenants.setdefault(request.tenant, len(tenants)))
            of_model.append(models.setdefault(request.model_name, len(models)))
            yield Prompt(
                request.block_ids, request.block_tokens, request.num_prompt_tokens, list(request.output_block_ids)
            )

    accesses = collect(prompts())
    return TracedAccesses(
        accesses,
        Names("tenant", tuple(tenants), np.asarray(of_tenant, np.int64)),
        Names("model", tuple(models), np.asarray(of_model, np.int64)),
    )


def read_trace(path: Path) -> Accesses:
    """Of a trace without texts. Raises TraceError, or OSError where the file cannot be read."""
    with open_trace(path) as trace:
        accesses = traced_accesses(trace).accesses
    if not accesses.num_requests:
        raise TraceError(f"{path} has no requests.")
    return accesses
