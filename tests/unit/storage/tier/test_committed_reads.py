"""Reads of committed records whose last stable offset lies in a segment that only the store has."""

import pytest

from protocol.records.markers import COMMIT, Marker, build_marker
from protocol.records.scan import scan_batches
from storage.files.file_slice import FetchData
from storage.tier.object_cache import BLOCK_BYTES
from storage.tier.port import StoreError
from storage.validation.internal_batch import own_batch
from tests.support.records.logs import append, make_durable
from tests.support.tier.restore_world import clock_of, restored, take_picture
from tests.support.tier.tier_world import CACHE_BYTES, TierWorld

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
