"""Producer snapshots: Kafka's bytes, and what a load makes of damaged ones."""

import struct

import pytest
from crc32c import crc32c

from storage.errors import CorruptCheckpoint, DiskError
from storage.producers.producer_snapshots import decode, encode, load_newest, save, stray_offsets
from storage.producers.producer_state import ProducerEntry, ProducerStates, RememberedBatch
from storage.segment.sync import sync_snapshot
from tests.support.disk.simdisk import SimFileSystem


def states_at(offset: int) -> ProducerStates:
    states = ProducerStates()
    batches = (RememberedBatch(3, 13, 1, 900), RememberedBatch(9, 20, 4, 1000))
    states.restore(7, ProducerEntry(2, batches=batches, last_timestamp=1000, coordinator_epoch=5,
                                    txn_first_offset=15))  # fmt: skip
    states.restore(8, ProducerEntry(0, last_timestamp=500))
    states.end_offset = offset
    return states


def test_the_bytes_are_kafkas() -> None:
    body = struct.pack(">i", 2)
    body += struct.pack(">qhiqiqiq", 7, 2, 9, 20, 4, 1000, 5, 15)
    body += struct.pack(">qhiqiqiq", 8, 0, -1, -1, 0, 500, -1, -1)
    assert encode(states_at(21)) == struct.pack(">hI", 1, crc32c(body)) + body
    assert len(encode(ProducerStates())) == 10


def test_a_snapshot_tells_that_the_sequences_of_a_producer_are_not_known() -> None:
    fs, states = SimFileSystem(), ProducerStates()
    states.log_start_offset = 20
    states.end_transaction(9, 2, 0, 20, 500, is_aborted=False)
    save(fs, "/", states)
    again = ProducerStates()
    assert load_newest(fs, "/", [21], again, at_least=0, at_most=30) == (21, ())
    [(producer_id, entry)] = again
    assert (producer_id, entry.epoch, entry.last_sequence) == (9, 2, -1)
    assert entry.is_marker_alone


def test_a_load_keeps_the_last_batch_of_each_producer() -> None:
    fs = SimFileSystem()
    assert save(fs, "/", states_at(21)) == "//00000000000000000021.snapshot"
    states = ProducerStates()
    loaded = load_newest(fs, "/", [21], states, at_least=0, at_most=30)
    assert loaded == (21, ())
    entries = dict(states)
    assert entries[7].batches == (RememberedBatch(9, 20, 4, 1000),)
    assert (entries[7].epoch, entries[7].coordinator_epoch) == (2, 5)
    assert entries[8].batches == ()
    assert states.first_unstable_offset == 15
    assert states.end_offset == 21


def test_who_is_expired_in_a_snapshot_is_forgotten_when_the_clock_is_believed() -> None:
    fs = SimFileSystem()
    save(fs, "/", states_at(21))
    states = ProducerStates()
    load_newest(fs, "/", [21], states, at_least=0, at_most=30)
    states.restore(9, ProducerEntry(0, batches=(RememberedBatch(0, 21, 0, 500),)))
    assert sorted(states.ids()) == [7, 8, 9]
    states.expire_restored(now_ms=1600, expiration_ms=1101)
    assert sorted(states.ids()) == [7, 8, 9]
    states.expire_restored(now_ms=1600, expiration_ms=1100)
    assert sorted(states.ids()) == [7, 9]  # an open transaction, and a batch behind the snapshot


def test_a_durable_snapshot_survives_a_power_cut() -> None:
    fs = SimFileSystem()
    path = save(fs, "", states_at(21))
    sync_snapshot(fs, path)
    fs.sync_dir("")
    for seed in range(30):
        assert fs.after_crash(seed).read_bytes(path) == encode(states_at(21))


def test_a_snapshot_whose_sync_failed_is_no_snapshot() -> None:
    fs = SimFileSystem()
    path = save(fs, "", states_at(21))
    fs.inject("sync", path=path)
    with pytest.raises(DiskError):
        sync_snapshot(fs, path)
    assert not fs.exists(path)
    sync_snapshot(fs, path)


def test_a_shorter_snapshot_replaces_a_longer_one_whole() -> None:
    fs = SimFileSystem()
    path = save(fs, "", states_at(21))
    empty = ProducerStates()
    empty.end_offset = 21
    save(fs, "", empty)
    assert fs.read_bytes(path) == encode(empty)


@pytest.mark.parametrize(
    "damage",
    [lambda d: d[:-1], lambda d: d[:5], lambda d: b"", lambda d: d[:20] + b"!" + d[21:],
     lambda d: b"\0\2" + d[2:], lambda d: d + b"\0", lambda d: bytes(len(d))],
    ids=["cut", "no head", "empty", "flipped", "newer", "longer", "zeros"],
)  # fmt: skip
def test_a_damaged_snapshot_is_removed_and_the_next_older_one_taken(damage) -> None:
    fs = SimFileSystem()
    old = ProducerStates()
    old.end_offset = 10
    save(fs, "/", old)
    path = save(fs, "/", states_at(21))
    broken = damage(fs.read_bytes(path))
    fs.write_atomically(path, broken)
    with pytest.raises(CorruptCheckpoint):
        decode(path, broken)
    states = states_at(99)
    loaded = load_newest(fs, "/", [10, 21], states, at_least=0, at_most=30)
    assert loaded.offset == 10
    assert len(loaded.damaged) == 1
    assert path in loaded.damaged[0]
    assert (len(states), states.end_offset, states.first_unstable_offset) == (0, 10, None)
    assert not fs.exists(path)


def test_a_snapshot_above_the_log_end_is_not_taken() -> None:
    fs = SimFileSystem()
    save(fs, "/", states_at(21))
    states = ProducerStates()
    loaded = load_newest(fs, "/", [21], states, at_least=0, at_most=20)
    assert loaded.offset is None
    assert len(states) == 0


def test_a_snapshot_from_before_the_first_segment_is_not_taken() -> None:
    fs = SimFileSystem()
    save(fs, "/", states_at(21))
    states = ProducerStates()
    assert load_newest(fs, "/", [21], states, at_least=22, at_most=30).offset is None
    assert len(states) == 0
    assert load_newest(fs, "/", [21], states, at_least=21, at_most=30).offset == 21


def test_strays_are_snapshots_without_a_segment_but_for_the_newest_of_all() -> None:
    assert stray_offsets([0, 5, 10, 12], [0, 10]) == [5]
    assert stray_offsets([5, 7], [0, 10]) == [5, 7]
    assert stray_offsets([10, 12, 15], [10]) == [12]
    assert stray_offsets([3], []) == []
    assert stray_offsets([], [0]) == []
