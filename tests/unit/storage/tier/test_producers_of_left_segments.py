"""Producers of batches that have left the directory are known after a power cut."""

import pytest

from storage.files.layout import SNAPSHOT, segment_name
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import LOG_PATH
from tests.support.tier.tier_world import TierWorld

RECORDS = 10
SNAPSHOT_NAME = f"{LOG_PATH}/{segment_name(RECORDS, SNAPSHOT)}"


def written() -> tuple[TierWorld, SimFileSystem]:
    """A log of one producer whose closed segments are in both places."""
    fs = SimFileSystem()
    world = TierWorld(sim_env(fs=fs))
    world.write_closed(RECORDS)
    world.copy_all()
    return world, fs


def after_a_cut(world: TierWorld, fs: SimFileSystem, seed: int) -> None:
    world.env = sim_env(fs=fs.after_crash(seed))
    world.open(is_clean=False)
    assert world.log.snapshot.local_start_offset == RECORDS


@pytest.mark.parametrize("seed", range(8))
def test_they_are_known_whatever_the_disk_has_kept(seed: int) -> None:
    world, fs = written()
    assert world.drop_all()
    after_a_cut(world, fs, seed)
    assert world.write(RECORDS - 1).duplicate
    assert world.write(RECORDS).base_offset == RECORDS


@pytest.mark.parametrize("left", [None, b"", b"torn"])
def test_a_snapshot_that_is_absent_or_torn_is_made_of_the_batches(left: bytes | None) -> None:
    world, fs = written()
    fs.remove(SNAPSHOT_NAME)
    if left is not None:
        fs.write_atomically(SNAPSHOT_NAME, left)
    assert world.drop_all()
    after_a_cut(world, fs, 1)
    assert world.write(RECORDS - 1).duplicate


def test_a_torn_snapshot_is_not_copied() -> None:
    """The store's segment would be taken for one that knows its producers."""
    fs = SimFileSystem()
    world = TierWorld(sim_env(fs=fs))
    for sequence in range(RECORDS):
        world.write(sequence)
    world.log.roll()
    fs.write_atomically(SNAPSHOT_NAME, b"torn")
    world.env.clock.advance(50)  # type: ignore[attr-defined]
    *before, last = world.copy_all()
    assert SNAPSHOT not in last.parts
    assert all(SNAPSHOT in each.parts for each in before)
