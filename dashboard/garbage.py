"""How a process that records collects garbage: rarely. Knows no tasks.

A booking makes thousands of tuples that die by their counts; looking for cycles among them after every 700 took up to a
tenth of it. What is there at the start is looked at no more.
"""

import gc

_NEW_OBJECTS = 20_000


def collect_rarely() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
