"""The power goes around the roll of a segment: what was aborted in it stays aborted."""

import pytest

from protocol.records.builder import build_batch
from protocol.records.markers import ABORT, Marker, build_marker
from storage.validation.internal_batch import own_batch
from tests.support.disk.crash_world import NOW, CrashWorld
from tests.support.disk.simdisk import SimFileSystem

PRODUCER = 7


class AbortWorld(CrashWorld):
    """One transaction was aborted, durably; every start tells readers of committed data so."""

    def abort(self) -> None:
        log = self.log
        batch = build_batch(
            [(NOW, b"k", b"aborted")],
            producer_id=PRODUCER, producer_epoch=0, base_sequence=0, transactional=True,
        )  # fmt: skip
        log.append(memoryview(batch), acks_all=True, leader_epoch=log.leader_epoch)
        marker = build_marker(Marker(ABORT, 1), PRODUCER, 0, NOW)
        log.append_own(own_batch(marker, NOW), acks_all=True, leader_epoch=log.leader_epoch)
        self.fs.on_call = None
        self.sync()
        self.manager.checkpoint()
        self.fs.on_call = self._look

    def judge(self, disk: SimFileSystem) -> None:
        log = self.started(disk).logs["t", 0]
        end = log.snapshot.log_end_offset
        aborted = [each.producer_id for each in log.search.aborted(0, end)]
        assert end == 2
        assert aborted == [PRODUCER], "readers of committed data get what was aborted"


@pytest.mark.parametrize("seed", range(5))
def test_a_recovery_point_at_the_end_of_a_segment_passes_no_abort_by(seed: int) -> None:
    world = AbortWorld(seed, 20)
    world.fs.on_call = None
    world.create()
    world.abort()
    world.log.roll()
    world.sync()
    world.manager.checkpoint()
    assert world.points > 100
    assert world.log.durability.recovery_point == 2
