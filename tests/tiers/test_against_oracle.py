"""Requests one after the other: contents, attribution and bytes are those of a list a tier, in every mode and size."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tiers.oracle import OracleHierarchy
from tests.tiers.rig import Rig, config, into, keys_of, make_rig
from tests.tiers.valkey import ValkeyServer
from tiers import Tier, WriteMode

RANKS = {Tier.GPU: 0, Tier.CPU: 1, Tier.DISK: 2, Tier.REMOTE: 3}
MAX_BLOCKS = 6
# A prompt is a path in a small tree, so that prompts share prefixes of every length.
PROMPTS = st.tuples(st.lists(st.integers(0, 1), min_size=1, max_size=MAX_BLOCKS - 1), st.integers(0, 1))
RESIZES = st.tuples(st.sampled_from([Tier.GPU, Tier.CPU, Tier.DISK]), st.integers(0, 12))
CLEARS = st.sampled_from([Tier.GPU, Tier.CPU, Tier.DISK])
SIZES = st.tuples(st.integers(MAX_BLOCKS, 10), st.integers(0, 12), st.integers(0, 14))
# So small, and so many long prompts, that most examples read from the fourth tier.
FOUR_SIZES = st.tuples(st.integers(MAX_BLOCKS, 7), st.integers(0, 3), st.integers(0, 3), st.integers(1, 24))
LONG_PROMPTS = st.tuples(st.lists(st.integers(0, 1), min_size=4, max_size=MAX_BLOCKS - 1), st.integers(0, 1))
SHARES = st.sampled_from([0.25, 0.5, 0.75, 1.0])
REMOTE_RESIZES = st.tuples(st.just(Tier.REMOTE), st.integers(1, 14))


class Pair:
    """The cache and its oracle, doing the same."""

    def __init__(self, sizes: Sequence[int], mode: WriteMode, path: Path, url: str | None) -> None:
        """`url` is the server of the fourth tier."""
        gpu, cpu, disk, remote = (*sizes, 0)[:4]
        self.now = 0.0
        settings = config(
            gpu=gpu, cpu=cpu, disk=disk, remote=remote, path=path, url=url, mode=mode, fingerprint=str(path)
        )
        self.rig: Rig = make_rig(settings, clock=lambda: self.now)
        self.oracle = OracleHierarchy(sizes, mode)
        self.chains: set[tuple[bytes, ...]] = set()

    def request(self, words: Sequence[int], num_open: int) -> None:
        """`num_open` blocks at the end are held, but do not fill."""
        keys = keys_of(words)
        num_hittable = len(keys) if num_open else len(keys) - 1
        shape = {"num_hittable": num_hittable, "num_blocks": len(keys) + num_open}
        assert self.rig.cache.match(keys) == self.oracle.match(keys)
        assert self.rig.request(keys, tenant=str(words[0]), **shape) == self.oracle.request(keys, **shape)
        self.chains.add(tuple(keys))
        self.compare()

    def look(self) -> None:
        """The server's index is what the books have: nobody else has done anything."""
        self.now += 10
        self.rig.settle()
        self.compare()
        store = self.rig.cache._parts.remote
        assert store is not None
        store.start_over()
        entries = store.look().news.used
        assert {entry.key for entry in entries} == set(self.oracle.order[3])
        values = [store.read_many([entry.key], into([bytearray(64)])) for entry in entries]
        assert values == [[None]] * len(entries)

    def resize(self, tier: Tier, size: int) -> None:
        size = max(size, MAX_BLOCKS) if tier is Tier.GPU else size
        self.rig.resize(tier, size)
        self.rig.settle()
        self.oracle.resize(RANKS[tier], size)
        self.compare()

    def limit(self, tier: Tier, share: float) -> None:
        """To what one tenant may have: it takes effect at once."""
        self.rig.cache.configure(tier, tenant_quota=share)
        self.rig.settle()
        self.oracle.limit(RANKS[tier], share)
        self.compare()

    def clear(self, tier: Tier) -> None:
        assert self.rig.cache.clear(tier) == len(self.oracle.order[RANKS[tier]])
        self.rig.settle()
        self.oracle.clear(RANKS[tier])
        self.compare()

    def wait_for_hits(self, num_hits: int) -> None:
        for tier in (Tier.CPU, Tier.DISK):
            self.rig.cache.configure(tier, store_after_hits=num_hits)
        self.oracle.hits_to_store = num_hits

    def compare(self) -> None:
        assert list(self.rig.resident().values()) == [len(order) for order in self.oracle.order]
        for chain in self.chains:
            assert self.rig.cache.match(chain) == self.oracle.match(chain)


def play(
    sizes: Sequence[int],
    mode: WriteMode,
    actions: Sequence[tuple[str, object]],
    finish: Callable[[Pair], None],
    url: str | None = None,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        pair = Pair(sizes, mode, Path(folder), url)
        for name, arguments in actions:
            getattr(pair, name)(*(arguments if isinstance(arguments, tuple) else (arguments,)))
        finish(pair)
        pair.rig.cache.close()


def nothing_is_lost(pair: Pair) -> None:
    assert pair.rig.cache.num_orphans == 0


REQUEST = st.tuples(st.just("request"), PROMPTS)
LONG_REQUEST = st.tuples(st.just("request"), LONG_PROMPTS)
LOOK = st.just(("look", ()))


@pytest.mark.parametrize("mode", WriteMode)
@settings(max_examples=60, deadline=None)
@given(sizes=SIZES, data=st.data())
def test_requests_find_blocks_where_a_list_for_each_tier_has_them(
    mode: WriteMode, sizes: tuple[int, int, int], data: st.DataObject
) -> None:
    play(sizes, mode, data.draw(st.lists(REQUEST, min_size=1, max_size=30)), nothing_is_lost)


@pytest.mark.parametrize("mode", WriteMode)
@settings(max_examples=60, deadline=None)
@given(sizes=SIZES, data=st.data())
def test_resizing_between_requests_moves_just_what_does_not_fit(
    mode: WriteMode, sizes: tuple[int, int, int], data: st.DataObject
) -> None:
    actions = st.one_of(REQUEST, REQUEST, st.tuples(st.just("resize"), RESIZES))
    play(sizes, mode, data.draw(st.lists(actions, min_size=1, max_size=30)), nothing_is_lost)


@pytest.mark.parametrize("mode", WriteMode)
@settings(max_examples=60, deadline=None)
@given(sizes=SIZES, data=st.data())
def test_a_tenant_at_its_share_of_a_tier_makes_room_for_itself(
    mode: WriteMode, sizes: tuple[int, int, int], data: st.DataObject
) -> None:
    limit = st.tuples(st.just("limit"), st.tuples(st.sampled_from(list(RANKS)[:3]), SHARES))
    first = data.draw(st.lists(limit, min_size=1, max_size=3))
    actions = st.one_of(REQUEST, REQUEST, REQUEST, limit, st.tuples(st.just("resize"), RESIZES))
    play(sizes, mode, [*first, *data.draw(st.lists(actions, min_size=1, max_size=30))], nothing_is_lost)


@settings(max_examples=60, deadline=None)
@given(sizes=SIZES, data=st.data())
def test_a_block_goes_down_at_the_hit_that_its_tiers_wait_for(sizes: tuple[int, int, int], data: st.DataObject) -> None:
    wait, clear = st.tuples(st.just("wait_for_hits"), st.integers(1, 3)), st.tuples(st.just("clear"), CLEARS)
    actions = st.one_of(REQUEST, REQUEST, REQUEST, wait, clear, st.tuples(st.just("resize"), RESIZES))
    drawn = data.draw(st.lists(actions, min_size=1, max_size=40))
    play(sizes, WriteMode.WRITE_SELECTIVE, drawn, lambda pair: None)


@settings(max_examples=60, deadline=None)
@given(sizes=SIZES, data=st.data())
def test_clearing_a_tier_leaves_the_others_as_they_are(sizes: tuple[int, int, int], data: st.DataObject) -> None:
    actions = st.one_of(REQUEST, REQUEST, st.tuples(st.just("clear"), CLEARS))
    play(sizes, WriteMode.WRITE_BACK, data.draw(st.lists(actions, min_size=1, max_size=30)), lambda pair: None)


@pytest.mark.parametrize("mode", WriteMode)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=FOUR_SIZES, data=st.data())
def test_a_server_is_one_more_list_that_keeps_what_is_read(
    kv_server: ValkeyServer, mode: WriteMode, sizes: tuple[int, int, int, int], data: st.DataObject
) -> None:
    resize = st.tuples(st.just("resize"), RESIZES | REMOTE_RESIZES)
    limit = st.tuples(st.just("limit"), st.tuples(st.sampled_from(list(RANKS)), SHARES))
    seldom = st.one_of(REQUEST, resize, limit, LOOK)
    actions = st.one_of(LONG_REQUEST, LONG_REQUEST, LONG_REQUEST, LONG_REQUEST, seldom)
    drawn = data.draw(st.lists(actions, min_size=20, max_size=40))
    play(sizes, mode, [*drawn, ("look", ())], nothing_is_lost, kv_server.url)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=FOUR_SIZES, data=st.data())
def test_clearing_any_of_four_tiers_leaves_the_others_as_they_are(
    kv_server: ValkeyServer, sizes: tuple[int, int, int, int], data: st.DataObject
) -> None:
    clear = st.tuples(st.just("clear"), st.sampled_from(list(Tier)))
    actions = st.one_of(LONG_REQUEST, LONG_REQUEST, LONG_REQUEST, LONG_REQUEST, REQUEST, clear, LOOK)
    drawn = data.draw(st.lists(actions, min_size=20, max_size=40))
    play(sizes, WriteMode.WRITE_BACK, drawn, lambda pair: None, kv_server.url)
