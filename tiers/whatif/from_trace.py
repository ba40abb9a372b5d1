"""Block accesses of a trace's requests, whatever its form. Knows nothing about forms."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tiers.traces import TraceError, TraceRequest, open_trace
from tiers.whatif.accesses import Accesses, Prompt, collect


@dataclass(frozen=True)
class TracedAccesses:
    """Accesses with whose they are: `tenant_of` int64 [R] is an index into `tenants`."""

    accesses: Accesses
    tenants: tuple[str, ...]
    tenant_of: NDArray[np.int64]

    def of_tenant(self, name: str) -> Accesses:
        """The others' requests take their room in the cache, and are not counted. Raises ValueError."""
        if name not in self.tenants:
            raise ValueError(
                f"The trace has no tenant “{name}”; it has {', '.join(f'“{each}”' for each in self.tenants[:20])}."
            )
        is_counted = self.tenant_of == self.tenants.index(name)
        of_blocks = np.repeat(is_counted, np.diff(self.accesses.starts))
        return replace(
            self.accesses,
            num_tokens=self.accesses.num_tokens * of_blocks,
            is_asked=self.accesses.is_asked & of_blocks,
            prompt_tokens=self.accesses.prompt_tokens * is_counted,
            is_counted=is_counted,
        )


def traced_accesses(requests: Iterable[TraceRequest]) -> TracedAccesses:
    index_of: dict[str, int] = {}
    tenant_of: list[int] = []

    def prompts() -> Iterator[Prompt]:
        for request in requests:
            tenant_of.append(index_of.setdefault(request.tenant, len(index_of)))
            yield Prompt(
                request.block_ids, request.block_tokens, request.num_prompt_tokens, list(request.output_block_ids)
            )

    accesses = collect(prompts())
    return TracedAccesses(accesses, tuple(index_of), np.asarray(tenant_of, np.int64))


def read_trace(path: Path) -> Accesses:
    """Of a trace without texts. Raises TraceError, or OSError where the file cannot be read."""
    with open_trace(path) as trace:
        accesses = traced_accesses(trace).accesses
    if not accesses.num_requests:
        raise TraceError(f"{path} has no requests.")
    return accesses
