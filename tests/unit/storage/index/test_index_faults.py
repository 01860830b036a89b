"""Indexes and zones when the disk says no, when the power goes, and when readers are elsewhere."""

from contextlib import suppress
from typing import Any

import pytest

from storage.errors import CorruptIndex, DiskError, NoSpace
from storage.files.layout import TXN_INDEX, segment_name
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.index.txn_index import AbortedTxn, TxnIndex
from storage.zones.zone_map import ZoneMap
from tests.support.disk.simdisk import SimFileSystem, SimulatedCrash

PATH = "/0.index"


def offset_index(fs: SimFileSystem) -> OffsetIndex:
    return OffsetIndex(fs, PATH, 0, 80_000)


def filled(kind: str, fs: SimFileSystem, count: int) -> Any:
    match kind:
        case "offsets":
            offsets = offset_index(fs)
            offsets.reset()
            for n in range(1, count + 1):
                offsets.append(n, n * 4096)
            return offsets
        case "times":
            times = TimeIndex(fs, PATH, 0, 120_000)
            times.reset()
            for n in range(1, count + 1):
                times.maybe_append(n * 10, n)
            return times
        case _:
            zones = ZoneMap(fs, PATH, 0)
            zones.reset()
            for n in range(count):
                zones.add(n, n * 70_000, 70_000, 1, n, n, n)
            return zones


KINDS = ["offsets", "times", "zones"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operation", ["create", "truncate", "write", "sync"])
def test_a_write_that_failed_is_made_good_by_the_next(kind: str, operation: str) -> None:
    expected_fs, fs = SimFileSystem(), SimFileSystem()
    filled(kind, expected_fs, 30).sync()
    index = filled(kind, fs, 30)
    fs.inject(operation, error="eio" if operation == "sync" else "enospc")
    with pytest.raises(DiskError):
        index.sync()
    index.flush()
    assert fs.read_bytes(PATH) == expected_fs.read_bytes(PATH)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("was_flushed", [False, True])
def test_what_a_failed_sync_lost_is_written_again_by_the_next(kind: str, was_flushed: bool) -> None:
    fs = SimFileSystem()
    index = filled(kind, fs, 30)
    if was_flushed:
        index.flush()
    fs.inject("sync")
    with pytest.raises(DiskError):
        index.sync()
    index.sync()
    fs.sync_dir("/")
    for cut in range(10):
        assert fs.after_crash(cut).read_bytes(PATH) == fs.read_bytes(PATH)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_disk_is_told_and_costs_nothing_in_memory(kind: str) -> None:
    fs = SimFileSystem(capacity_bytes=100)
    index = filled(kind, fs, 30)
    with pytest.raises(NoSpace):
        index.unload()
    fs.capacity_bytes = None
    index.unload()
    if isinstance(index, OffsetIndex):
        assert [index.entry(n).offset for n in range(30)] == list(range(1, 31))


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_power_cut_synced_entries_are_there_and_order_holds_or_damage_is_told(
    kind: str,
) -> None:
    fs = SimFileSystem()
    index = filled(kind, fs, 200)
    index.sync()
    fs.sync_dir("/")
    synced = fs.read_bytes(PATH)
    if isinstance(index, OffsetIndex):
        for n in range(300, 600):
            index.append(n, n * 4096)
    elif isinstance(index, TimeIndex):
        for n in range(300, 600):
            index.maybe_append(n * 10, n)
    else:
        for n in range(300, 600):
            index.add(n, n * 70_000, 70_000, 1, n, n, n)
    index.flush()
    for seed in range(150):
        after = fs.after_crash(seed)
        assert after.read_bytes(PATH).startswith(synced)
        if kind == "offsets":
            again = offset_index(after)
            try:
                offsets = [again.entry(n).offset for n in range(again.entries)]
            except CorruptIndex:
                continue
            assert offsets == sorted(set(offsets))


def test_zones_survive_a_torn_write_up_to_the_tear() -> None:
    fs = SimFileSystem()
    fs.make_dir("/d")
    zones = filled("zones", fs, 300)
    zones.flush()
    fs.sync_dir("/")
    whole = [zone.first_offset for zone in zones.zones()]
    told = 0
    for seed in range(150):
        again = ZoneMap(fs.after_crash(seed), PATH, 0)
        kept = [zone.first_offset for zone in again.zones()]
        assert kept == whole[: len(kept)]
        told += again.damage is not None
    assert told > 10


def test_a_reader_keeps_what_it_found_while_the_index_is_dropped_or_cut() -> None:
    fs = SimFileSystem()
    index = filled("offsets", fs, 30)
    seen = index._load()
    index.unload()
    index.truncate_to(5)
    assert index._entry(seen, 20) == (21, 21 * 4096)


def test_the_transaction_index_is_made_durable_on_demand() -> None:
    fs = SimFileSystem()
    path = f"/{segment_name(0, TXN_INDEX)}"
    index = TxnIndex(fs, path, 0)
    index.append(AbortedTxn(1, 0, 5, 6))
    index.sync()
    fs.sync_dir("/")
    for seed in range(20):
        again = TxnIndex(fs.after_crash(seed), path, 0)
        again.check()
        assert again.entries == index.entries


def test_a_crash_while_the_transaction_index_is_made_durable_is_noticed_or_harmless() -> None:
    """Whatever call it strikes: the index is that of before, of now, or made anew."""
    path = f"/{segment_name(0, TXN_INDEX)}"
    fates = set()
    for step in range(30):
        fs = SimFileSystem()
        index = TxnIndex(fs, path, 0)
        index.append(AbortedTxn(1, 0, 5, 6))
        index.sync()
        fs.sync_dir("/")
        fs.crash_at = fs.calls + step + 1
        with suppress(SimulatedCrash):
            index.reset()
            index.append(AbortedTxn(2, 1, 7, 8))
            index.sync()
            fs.sync_dir("/")
        for seed in range(10):
            again = TxnIndex(fs.after_crash(seed), path, 0)
            try:
                again.check()
            except CorruptIndex:
                fates.add(None)
            else:
                fates.add(again.entries)
    assert fates == {None, (AbortedTxn(1, 0, 5, 6),), (AbortedTxn(2, 1, 7, 8),)}
