"""How torch's threads wait for each other, in every process that will load it. Knows nothing about torch itself."""

import os


def spin_briefly() -> None:
    """How long they spin at a barrier before they sleep. It must be said before torch is loaded; what is set, stays.

    GNU OpenMP's own 300,000 turns burn the time slices that the other threads need. Decoding SmolLM2 on two cores,
    alone and beside one busy process: 46 and 371 ms a token as it comes, 45 and 105 ms so.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
