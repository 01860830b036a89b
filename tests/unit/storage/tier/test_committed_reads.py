"""Reads of committed records whose last stable offset lies in a segment that only the store has."""

import random

import pytest

from protocol.records.batch import read_header
from protocol.records.builder import build_batch
from protocol.records.markers import ABORT, COMMIT, Marker, build_marker
from protocol.records.scan import scan_batches
from storage.files.file_slice import FetchData
from storage.files.layout import LOG, segment_name
from storage.index.txn_index import AbortedTxn
from storage.search.segment_access import NotInMemory
from storage.tier.names import SIDE
from storage.tier.object_cache import BLOCK_BYTES
from storage.tier.port import StoreError
from storage.tier.remote_object import RemoteObject
from storage.tier.remote_segments import unique_of
from storage.validation.internal_batch import own_batch
from tests.support.records.aborting_logs import Author
from tests.support.records.logs import LOG_PATH, append, make_durable
from tests.support.tier.restore_world import clock_of, restored, take_picture
from tests.support.tier.tier_world import CACHE_BYTES, KEYS, TierWorld

T0 = 1_700_000_000_000
BEFORE = 5
"""Number of the batches before the transaction; each has one record."""


def with_an_open_transaction(value_bytes: int, cache_bytes: int = CACHE_BYTES) -> TierWorld:
    """A log whose disk was lost, and with it the marker of a transaction in the store's part."""
    world = TierWorld(cache_bytes=cache_bytes, segment_bytes=1 << 30)
    log, value = world.log, bytes(value_bytes)
    for n in range(BEFORE):
        append(log, T0 + n, value=value)
    append(
        log, T0 + 9, value=b"tx", producer_id=1, producer_epoch=0, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    append(log, T0 + 10, value=value)
    log.roll()
    marker = own_batch(build_marker(Marker(COMMIT, 0), 1, 0, T0 + 20), T0 + 20)
    log.append_own(marker, acks_all=False, leader_epoch=0)
    make_durable(log)
    clock_of(world).advance(50)
    assert len(world.copy_all()) == 1
    take_picture(world)
    again = restored(world)
    assert again.log.snapshot.last_stable_offset == BEFORE
    return again


def committed(world: TierWorld, offset: int, max_bytes: int = 1 << 20) -> FetchData:
    """One look of a fetch, as the event loop takes it: an error where that asks the store."""
    end = world.log.snapshot.last_stable_offset
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(world.store, "get_range", _refuse)
        return world.log.read(offset, max_bytes, up_to=end, min_one_batch=True)


def aborted(world: TierWorld, offset: int, data: FetchData) -> list[AbortedTxn]:
    """The list that goes with the data: an error where that asks the store."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(world.store, "get_range", _refuse)
        return world.log.search.aborted_in(offset, data)


def _refuse(key: str, position: int, size: int) -> bytes:
    raise StoreError(key, "get_range", f"{size} bytes at {position} were asked for")


def test_committed_reads_never_ask_the_store_on_the_way_to_an_answer() -> None:
    world = with_an_open_transaction(100)
    data = committed(world, 0)
    assert data.unverified is not None
    assert data.unverified.is_away
    data.unverified.settle()
    data = committed(world, 0)
    assert data.unverified is None
    assert [row[1] for row in scan_batches(data.read()).batches] == list(range(BEFORE))
    unbounded = world.read_from(0)
    assert [row[1] for row in scan_batches(unbounded).batches] == list(range(BEFORE + 2))


def test_the_last_stable_offset_far_from_what_is_read_takes_no_room_in_a_small_cache() -> None:
    """The cache has room for one batch: its end is known by then, and does not come again."""
    world = with_an_open_transaction(BLOCK_BYTES - 1000, cache_bytes=BLOCK_BYTES)
    for offset in range(BEFORE):
        for _ in range(3):
            data = committed(world, offset, 1)
            if data.unverified is None:
                break
            data.unverified.settle()
        (row,) = scan_batches(data.read()).batches
        assert row[1] == offset


def with_aborted_transactions() -> TierWorld:
    """A log with aborted transactions in each of its segments, on the disk and in the store."""
    world = TierWorld()
    Author(world.log, random.Random(3)).write(120)
    make_durable(world.log)
    clock_of(world).advance(1000)
    world.copy_all()
    return world


def test_a_list_of_aborted_transactions_that_has_left_is_not_asked_for_on_the_way() -> None:
    """Segments leave the directory after they were read, and before their list is looked at."""
    world = with_aborted_transactions()
    data = committed(world, 0)
    before = aborted(world, 0, data)
    assert before
    assert world.drop_all() > 2
    with pytest.raises(NotInMemory):
        aborted(world, 0, data)
    world.read_from(0)
    data = committed(world, 0)
    assert data.unverified is None
    assert aborted(world, 0, data) == before


def test_an_offset_index_that_has_left_the_memory_is_not_asked_for_on_the_way() -> None:
    world = with_aborted_transactions()
    world.drop_all()
    world.read_from(0)
    data = committed(world, 0)
    found = aborted(world, 0, data)
    first = world.log.snapshot.segments[0]
    first.indexes, first.verified = None, False
    assert isinstance(first.away, RemoteObject)
    first.away._reach.cache.forget(KEYS.segment(0, unique_of(first), SIDE))
    assert set(aborted(world, 0, data)) >= set(found)


def test_the_list_of_a_segment_that_ends_in_a_gap_comes_before_the_next_one_is_read() -> None:
    """Offsets 3 and 4 were lost; whoever reads from there gets what the next segment has."""
    world = TierWorld()
    world.log.close()
    begun = build_batch(
        [(T0, None, b"a")], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    marker = build_marker(Marker(ABORT, 0), 7, 0, T0)
    marker[:8] = (1).to_bytes(8, "big")
    two, five, six = (build_batch([(T0, None, b"b")], base_offset=at) for at in (2, 5, 6))
    batches = {0: bytes(begun + marker + two), 5: bytes(five), 6: bytes(six)}
    for base_offset, data in batches.items():
        file = world.env.fs.open(f"{LOG_PATH}/{segment_name(base_offset, LOG)}", create=True)
        file.write_at(0, data)
        file.sync()
    world.open()
    aborts = world.log.snapshot.segments[0].aborted
    aborts.append(AbortedTxn(7, 0, 1, 2))
    aborts.sync()
    clock_of(world).advance(1000)
    assert [row.base_offset for row in world.copy_all()] == [0, 5]
    assert world.drop_all() == 2
    first = world.log.snapshot.segments[0]
    world.log.search.first_at_or_after(T0, may_wait=True, may_ask=True)
    world.read_from(5)
    assert first.verified
    assert not first.knows_aborted
    found = committed(world, 3)
    assert found.unverified is not None
    found.unverified.settle()
    found = committed(world, 3)
    assert read_header(found.read()).base_offset == 5
    assert aborted(world, 3, found) == []
