"""What other tier sizes would have done with the same accesses: exact answers from one pass over them.

Integers only: block ids in, hits by capacity out. Knows nothing about requests' text, engines or money.
"""

from typing import TYPE_CHECKING

from tiers.lazily import lazily

if TYPE_CHECKING:
    from tiers.whatif.accesses import Accesses, AccessesError
    from tiers.whatif.curve import HitCurve
    from tiers.whatif.from_trace import read_trace, traced_accesses
    from tiers.whatif.stack import TouchOrder, stack_positions
else:
    __getattr__ = lazily(
        __name__,
        {
            "Accesses": "accesses",
            "AccessesError": "accesses",
            "HitCurve": "curve",
            "TouchOrder": "stack",
            "read_trace": "from_trace",
            "stack_positions": "stack",
            "traced_accesses": "from_trace",
        },
    )

__all__ = [
    "Accesses",
    "AccessesError",
    "HitCurve",
    "TouchOrder",
    "read_trace",
    "stack_positions",
    "traced_accesses",
]
