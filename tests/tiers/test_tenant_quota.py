"""What one tenant may keep in a tier: in gpu what requests leave, over restarts, and for more tenants than numbers."""

from pathlib import Path

import pytest

from tests.tiers.rig import ROOT, Rig, config, keys_of, make_rig
from tests.tiers.valkey import ValkeyServer
from tiers import Policy, Tier, TierConfig, WriteMode, ladder
from tiers.block_format import Header, unpack
from tiers.books.books import Books
from tiers.books.layout import MAX_TENANTS
from tiers.level import Level, quota_blocks
from tiers.node import ensure


def owned(rig: Rig, tier: Tier) -> dict[str, int]:
    parts = rig.cache._parts
    level = parts.level(tier)
    assert level is not None
    return parts.books.tenants.num_blocks(level.rank)


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("mode", WriteMode)
def test_what_a_tenant_floods_the_tiers_with_leaves_what_others_have_where_it_is(
    mode: WriteMode, policy: Policy, tmp_path: Path
) -> None:
    rig = make_rig(config(gpu=8, cpu=8, disk=8, path=tmp_path, mode=mode, policy=policy, quota=0.5))
    for _ in range(3):
        rig.request(keys_of([0, 0, 0]), tenant="quiet")
    before = rig.cache.match(keys_of([0, 0, 0]))
    for word in range(1, 30):
        rig.request(keys_of([word, word, word, word]), tenant="loud")
    assert rig.cache.match(keys_of([0, 0, 0])) == before == [Tier.GPU] * 3
    assert all(owned(rig, tier).get("loud", 0) <= 4 for tier in (Tier.GPU, Tier.CPU, Tier.DISK))


def test_a_running_request_has_what_it_needs_and_leaves_what_its_tenant_may_keep() -> None:
    rig = make_rig(config(gpu=8, quota=0.5))
    lease = rig.acquire(keys_of([1] * 8), tenant="a")
    rig.compute(lease, keys_of([1] * 8))
    rig.cache.check()
    assert rig.resident()[Tier.GPU] == 8
    rig.cache.release(lease)
    rig.settle()
    assert rig.cache.match(keys_of([1] * 8)) == [Tier.GPU] * 4
    assert rig.cache.stats()[Tier.GPU].evicted_blocks["quota"] == 4


def test_what_leaves_gpu_for_its_tenants_share_goes_down_like_other_blocks() -> None:
    rig = make_rig(config(gpu=8, cpu=8, quota=0.5))
    rig.request(keys_of([1] * 7), tenant="a")
    assert rig.cache.match(keys_of([1] * 7)) == [Tier.GPU] * 4 + [Tier.CPU] * 3


@pytest.mark.parametrize(("blocks", "reasons"), [(0, {"resize": 4}), (6, {"quota": 1})])
def test_what_leaves_a_tier_that_shrinks_leaves_for_its_size_where_it_is_beyond_that(
    blocks: int, reasons: dict[str, int]
) -> None:
    rig = make_rig(config(gpu=4, cpu=8, quota=0.5))
    for word in range(3):
        rig.request(keys_of([word] * 3), tenant="a")
    before = rig.cache.stats()[Tier.CPU]
    assert before.resident_blocks == 4, "half of the tier"
    rig.resize(Tier.CPU, blocks)
    told = rig.cache.stats()[Tier.CPU].evicted_blocks
    new = {reason: number - before.evicted_blocks[reason] for reason, number in told.items()}
    assert {reason: number for reason, number in new.items() if number} == reasons


def test_requests_without_a_tenant_are_one_tenant_like_the_others() -> None:
    rig = make_rig(config(gpu=8, quota=0.5))
    for word in range(3):
        rig.request(keys_of([word] * 3))
    assert owned(rig, Tier.GPU) == {"": 4}


def test_a_lower_share_empties_a_tier_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "SURPLUS_A_STEP", 2)
    rig = make_rig(config(gpu=16))
    rig.request(keys_of([1] * 16), tenant="a")
    rig.cache.configure(Tier.GPU, tenant_quota=0.5)
    left = [rig.resident()[Tier.GPU]]
    while rig.cache.poll():
        rig.cache.check()
        left.append(rig.resident()[Tier.GPU])
    assert left == [14, 12, 10, 8]


def test_after_a_restart_each_block_on_disk_is_its_tenants(tmp_path: Path) -> None:
    def build() -> Rig:
        return make_rig(config(gpu=8, disk=8, path=tmp_path, mode=WriteMode.WRITE_THROUGH, quota=0.5))

    rig = build()
    rig.request(keys_of([1, 1, 1]), tenant="a")
    rig.request(keys_of([2, 2]), tenant="käse")
    rig.cache.close()
    rig = build()
    assert owned(rig, Tier.DISK) == {"a": 3, "käse": 2}
    rig.request(keys_of([3, 3, 3]), tenant="a")
    assert owned(rig, Tier.DISK) == {"a": 4, "käse": 2}
    rig.cache.close()


def test_a_stop_writes_down_no_more_of_a_tenant_than_it_may_keep_there(tmp_path: Path) -> None:
    rig = make_rig(config(gpu=16, disk=8, path=tmp_path))
    rig.request(keys_of([1] * 4), tenant="a")
    rig.request(keys_of([2] * 8), tenant="b")
    rig.cache.configure(Tier.DISK, tenant_quota=0.5)
    rig.cache.flush(float("inf"))
    assert owned(rig, Tier.DISK) == {"a": 4, "b": 4}
    assert rig.cache.stats()[Tier.DISK].refused_blocks == 4
    rig.cache.close()


def test_blocks_that_were_written_before_there_were_tenants_are_nobodys() -> None:
    header = Header(b"k" * 16, b"p" * 16, 0, 64, b"l" * 16, b"c" * 16)
    assert unpack(header.pack()) == header
    assert header.pack()[88:240] == bytes(152)  # as such blocks have it
    named = Header(b"k" * 16, b"p" * 16, 0, 64, b"l" * 16, b"c" * 16, "t" * 32)
    assert unpack(named.pack()).tenant == "t" * 32


def test_a_block_is_the_tenants_that_has_the_block_before_it() -> None:
    """Tenants have salts, so this is for blocks that were found without saying whose they are."""
    rig = make_rig(config(gpu=8, quota=0.5))
    rig.request(keys_of([1, 1]), tenant="a")
    rig.request(keys_of([1, 1, 1]), tenant="b")
    assert owned(rig, Tier.GPU) == {"a": 3}


def test_a_name_that_no_header_has_room_for_is_refused() -> None:
    rig = make_rig(config(gpu=8))
    with pytest.raises(ValueError, match="has more than 32 bytes"):
        rig.request(keys_of([1]), tenant="ä" * 17)


def test_more_tenants_than_there_are_numbers_share_one_and_a_number_is_given_again() -> None:
    books = Books(1)
    level = Level(books, 0, TierConfig(Tier.GPU, 2_000), 1)
    rows = []
    for number in range(MAX_TENANTS + 3):
        node = ensure(books, number.to_bytes(16, "big"), ROOT, 0)
        books.give_to(node.row, f"t{number}")
        rows.append(level.add(node, Tier.GPU))
    told = books.tenants.num_blocks(0)
    assert told["t0"] == told[f"t{MAX_TENANTS - 3}"] == 1
    assert told[""] == 5  # those that came when all numbers were taken
    books.check()
    assert books.tenants.number("late") == MAX_TENANTS - 1
    gone = rows[7].node
    level.remove(rows[7])
    rows[7].give_row()
    gone.tidy()
    assert books.tenants.number("late") == 8  # t7's
    assert books.tenants.number("t7") == 8  # "late" has no block
    books.check()


def test_a_share_is_whole_blocks_and_at_least_one() -> None:
    assert [quota_blocks(100, share) for share in (0.29, 0.57, 0.001)] == [29, 57, 1]


@pytest.mark.parametrize("share", [0, -1, 1.5])
def test_a_share_that_cannot_be_is_refused(share: float) -> None:
    rig = make_rig(config(gpu=8))
    with pytest.raises(ValueError, match="more than 0 and at most 1"):
        rig.cache.configure(Tier.GPU, tenant_quota=share)
    with pytest.raises(ValueError, match="more than 0 and at most 1"):
        TierConfig(Tier.GPU, 8, tenant_quota=share)


def test_engines_that_share_a_server_know_whose_each_block_is(kv_server: ValkeyServer) -> None:
    def build() -> Rig:
        return make_rig(config(gpu=4, remote=8, url=kv_server.url, mode=WriteMode.WRITE_THROUGH, quota=0.5))

    one, other = build(), build()
    one.request(keys_of([1, 1, 1]), tenant="a")
    other.cache.close()
    other = build()
    assert owned(other, Tier.REMOTE) == {"a": 3}
    other.request(keys_of([2, 2, 2]), tenant="a")
    other.request(keys_of([3, 3, 3]), tenant="b")
    assert owned(other, Tier.REMOTE) == {"a": 4, "b": 3}
    one.cache.close()
    other.cache.close()


def test_what_others_store_beyond_a_share_stays_until_this_side_stores(kv_server: ValkeyServer) -> None:
    others = make_rig(config(gpu=8, remote=8, url=kv_server.url, mode=WriteMode.WRITE_THROUGH))
    others.request(keys_of([1] * 6), tenant="a")
    rig = make_rig(config(gpu=8, remote=8, url=kv_server.url, mode=WriteMode.WRITE_THROUGH, quota=0.5))
    assert owned(rig, Tier.REMOTE) == {"a": 6}
    rig.request(keys_of([2]), tenant="a")
    assert owned(rig, Tier.REMOTE) == {"a": 4}
    others.cache.close()
    rig.cache.close()


def test_a_stop_sends_no_more_of_a_tenant_than_it_may_keep_there(kv_server: ValkeyServer) -> None:
    rig = make_rig(config(gpu=16, remote=8, url=kv_server.url))
    rig.request(keys_of([1] * 4), tenant="a")
    rig.request(keys_of([2] * 8), tenant="b")
    rig.cache.configure(Tier.REMOTE, tenant_quota=0.5)
    rig.cache.flush(float("inf"))
    rig.cache.close()
    again = make_rig(config(gpu=16, remote=8, url=kv_server.url))
    assert owned(again, Tier.REMOTE) == {"a": 4, "b": 4}
    again.cache.close()


def test_what_older_programs_stored_on_a_server_is_nobodys(kv_server: ValkeyServer) -> None:
    rig = make_rig(config(gpu=8, remote=8, url=kv_server.url, mode=WriteMode.WRITE_THROUGH))
    rig.request(keys_of([1, 1]), tenant="a")
    store = rig.cache._parts.remote
    assert store is not None
    for key in keys_of([1, 1]):
        place = kv_server.client.hget((store.prefix + b"tree").decode(), key)
        assert isinstance(place, bytes)
        kv_server.client.hset((store.prefix + b"tree").decode(), key, place[:20])
    again = make_rig(config(gpu=8, remote=8, url=kv_server.url))
    assert again.cache.match(keys_of([1, 1])) == [Tier.REMOTE] * 2
    assert owned(again, Tier.REMOTE) == {"": 2}
    rig.cache.close()
    again.cache.close()
