"""Tries policies and write modes for an engine, a turn at a time: asked for by a page, gone on with by a worker.

What was tried is stored after each simulation, under a claim, so that a worker that dies loses one of them. Knows no
forms and no HTTP; what a setup serves is asked of dashboard/policy_run.py.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from dashboard.models import PolicySearch
from dashboard.policy_words import Setup

if TYPE_CHECKING:
    from dashboard.policy_run import Sample

logger = logging.getLogger(__name__)

MAX_SIZES = 5
TURN_SECONDS = 8
READ_SECONDS = 40  # of a long trace the requests that can be read in this time
_CLAIM_SECONDS = 120
_KEPT = 20  # searches, of all engines
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_OWN_ERROR = "It was ended by an error of Tierscope's own, which the worker's log tells."
UNFINISHED = (PolicySearch.State.WAITING, PolicySearch.State.RUNNING)

Clock = Callable[[], datetime]
_held: "dict[int, Sample]" = {}


def create(
    *,
    engine: str,
    file_name: str,
    form: str,
    tiers: Sequence[Mapping[str, Any]],
    sizes: Sequence[Mapping[str, int]],
    seconds: Mapping[str, float],
    author: User | None,
    now: datetime,
) -> PolicySearch:
    """In the place of those of this engine that are not finished; at most MAX_SIZES of `sizes` are tried."""
    PolicySearch.objects.filter(engine=engine, state__in=UNFINISHED).delete()
    search = PolicySearch.objects.create(
        engine=engine,
        file_name=file_name,
        form=form,
        tiers=[dict(each) for each in tiers],
        sizes=[dict(each) for each in sizes[:MAX_SIZES]],
        seconds=dict(seconds),
        claimed_until=_LONG_AGO,
        author=author,
        created_at=now,
    )
    old = list(PolicySearch.objects.values_list("pk", flat=True)[_KEPT:])
    PolicySearch.objects.filter(pk__in=old).delete()
    return search


def unfinished_ids(now: datetime) -> list[int]:
    """Those that nobody is on, the oldest first."""
    return list(_free(now).order_by("pk").values_list("pk", flat=True))


def take_turn(search_id: int, *, clock: Clock, seconds: float = TURN_SECONDS) -> bool:
    """Goes on with it for so long; False where somebody else has it, or there is nothing to do."""
    now = clock()
    until = now + timedelta(seconds=_CLAIM_SECONDS)
    if not _free(now).filter(pk=search_id).update(claimed_until=until, state=PolicySearch.State.RUNNING):
        return False
    turn = _Turn(PolicySearch.objects.get(pk=search_id), clock)
    try:
        turn.go_on(seconds)
    except _TurnOverError:
        pass
    except (ValueError, OSError) as error:  # of the trace or its file, in a sentence
        _fail(search_id, clock(), str(error))
    except Exception:
        _fail(search_id, clock(), _OWN_ERROR)
        raise
    finally:  # unless the claim ran out and another worker is on it
        PolicySearch.objects.filter(pk=search_id, claimed_until=turn.claimed_until).update(claimed_until=_LONG_AGO)
    return True


def _fail(search_id: int, now: datetime, sentence: str) -> None:
    _held.pop(search_id, None)
    state = PolicySearch.State.FAILED
    PolicySearch.objects.filter(pk=search_id).update(state=state, error=sentence, finished_at=now)


class _TurnOverError(Exception):
    """The time is over, or the search is no longer this worker's."""


class _Turn:
    def __init__(self, search: PolicySearch, clock: Clock) -> None:
        self.claimed_until = search.claimed_until
        self._search = search
        self._clock = clock
        self._ends_at = clock()

    def go_on(self, seconds: float) -> None:
        """For so long once the trace is read."""
        from dashboard.policy_run import try_all

        search = self._search
        sample = self._sample()
        self._ends_at = self._clock() + timedelta(seconds=seconds)
        for place, sizes in enumerate(search.sizes):
            try_all(search.tiers, sizes, search.seconds, partial(self._serve, sample, place))
        _held.pop(search.pk, None)
        self._save(state=PolicySearch.State.DONE, finished_at=self._clock())

    def _sample(self) -> "Sample":
        from dashboard.policy_run import read_sample

        search = self._search
        if search.pk not in _held:
            _held.clear()
            stops_at = self._clock() + timedelta(seconds=READ_SECONDS)
            known, numbers = search.sample, count(1)
            goes_on = lambda: next(numbers) < known["requests"] if known else self._clock() < stops_at  # noqa: E731  (shorter than a def)
            sample, is_all = read_sample(search.file_name, search.form, goes_on)
            is_all = known.get("is_all", is_all)  # as many as the worker that began, however fast this one reads
            _held[search.pk] = sample
            told = {"requests": sample.num_requests, "rate": sample.rate, "is_all": is_all}
            if search.sample and search.sample != told:
                search.results = []  # the trace has grown since another worker read it
            self._save(sample=told, results=search.results)
        return _held[search.pk]

    def _serve(self, sample: "Sample", place: int, setup: Setup) -> list[float]:
        from dashboard.policy_run import simulate

        search = self._search
        known = next(
            (each["hit"] for each in search.results if each["sizes"] == place and _same(each["setup"], setup)), None
        )
        if known is None:
            if self._clock() >= self._ends_at:
                raise _TurnOverError
            known = list(simulate(sample, search.tiers, search.sizes[place], setup))
            search.results.append({"sizes": place, "setup": [list(each) for each in setup], "hit": known})
            self._save(results=search.results)
        return known

    def _save(self, **told: Any) -> None:
        """Raises _TurnOverError where it was removed, or another worker is on it, since the claim ran out."""
        until = self._clock() + timedelta(seconds=_CLAIM_SECONDS)
        own = PolicySearch.objects.filter(pk=self._search.pk, claimed_until=self.claimed_until)
        if not own.update(claimed_until=until, **told):
            _held.pop(self._search.pk, None)
            raise _TurnOverError
        self.claimed_until = until


def _same(stored: Sequence[Sequence[str]], setup: Setup) -> bool:
    return tuple(map(tuple, stored)) == setup


def _free(now: datetime) -> QuerySet[PolicySearch]:
    return PolicySearch.objects.filter(state__in=UNFINISHED, claimed_until__lte=now)
