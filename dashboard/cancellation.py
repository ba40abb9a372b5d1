"""Notices a cancellation that something below swallowed. Knows nothing about what is cancelled.

A client that hangs up is a cancelled task. Up to Python 3.11 asyncio.wait_for forgets a cancellation that comes while
what it waits for has just ended, and redis-py sends through it: one hang-up in ten was lost, and its request ran on.
"""

import asyncio


def raise_if_cancelled() -> None:
    """For loops that wait for others: raises CancelledError where this task was asked to end and still runs."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
