"""Other people's traces, and our own: files in, requests out, one after the other, each fault with its file and line.

Knows nothing about caches, engines or tokenizers: what makes token ids of text is handed in.
"""

from typing import TYPE_CHECKING

from tiers.lazily import lazily

if TYPE_CHECKING:
    from tiers.traces.faults import CountFaults, Faults, RefuseFaults
    from tiers.traces.forms import KINDS
    from tiers.traces.limits import TraceLimits
    from tiers.traces.request import TraceError, TraceRequest
    from tiers.traces.trace import Trace, open_trace
else:
    __getattr__ = lazily(
        __name__,
        {
            "KINDS": "forms",
            "CountFaults": "faults",
            "Faults": "faults",
            "RefuseFaults": "faults",
            "Trace": "trace",
            "TraceError": "request",
            "TraceLimits": "limits",
            "TraceRequest": "request",
            "open_trace": "trace",
        },
    )

__all__ = [
    "KINDS",
    "CountFaults",
    "Faults",
    "RefuseFaults",
    "Trace",
    "TraceError",
    "TraceLimits",
    "TraceRequest",
    "open_trace",
]
