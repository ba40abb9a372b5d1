"""What other tier sizes would have done with the same accesses: exact answers from one pass over them.

Integers only: block ids in, hits by capacity out. Knows nothing about requests' text, engines or money.
"""

from typing import TYPE_CHECKING

from tiers.lazily import lazily

if TYPE_CHECKING:
    from tiers.whatif.accesses import Accesses, AccessesError
    from tiers.whatif.curve import HitCurve
    from tiers.whatif.stack import TouchOrder, stack_positions
    from tiers.whatif.trace_files import TraceError, read_trace
else:
    __getattr__ = lazily(
        __name__,
        {
            "Accesses": "accesses",
            "AccessesError": "accesses",
            "HitCurve": "curve",
            "TouchOrder": "stack",
            "TraceError": "trace_files",
            "read_trace": "trace_files",
            "stack_positions": "stack",
        },
    )

__all__ = [
    "Accesses",
    "AccessesError",
    "HitCurve",
    "TouchOrder",
    "TraceError",
    "read_trace",
    "stack_positions",
]
