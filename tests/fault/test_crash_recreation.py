"""The power goes at every call while a topic is deleted and made again: the new log owes the old
one nothing, whatever checkpoints said of their common name."""

from uuid import UUID

import pytest

from storage.cleaner.cleanable_logs import CleanerOffsets
from tests.support.disk.crash_world import LOG_DIR, TOPIC_ID, CrashWorld, Ledger
from tests.support.disk.simdisk import SimFileSystem


class RecreationWorld(CrashWorld):
    """One name, several topics after one another, each with an id of its own."""

    generation = 0
    gone: frozenset[UUID | None] = frozenset()
    """Ids of topics that were acknowledged as deleted."""
    is_young = False
    """Whether the log was made and nothing was taken from it, nor compacted."""

    @property
    def topic_id(self) -> UUID:
        return UUID(int=TOPIC_ID.int + self.generation)

    def create_again(self) -> None:
        self.is_young = False
        self.gone |= {self.topic_id}
        self.generation += 1
        self.ledger = Ledger()
        self._unsynced.clear()
        self.manager.create_log("t", 0, self.topic_id, self.config)
        self.ledger.exists = self.is_young = True

    def live(self, *, compacted: bool) -> None:
        """Records, a log start, a compaction's end, and checkpoints of all that."""
        for _ in range(self.dice.randint(2, 5)):
            self.append(records=self.dice.randint(1, 3))
        self.sync()
        self.is_young = False
        self.delete_records(self.dice.randint(1, self.log.snapshot.high_watermark))
        if compacted:
            self.manager.cleaned(self.log, self.log.snapshot.log_end_offset, 10**12)
        self.manager.checkpoint()

    def judge(self, disk: SimFileSystem) -> None:
        log = self.started(disk.after_kill()).logs.get(("t", 0))
        if log is not None:
            assert log.topic_id not in self.gone, "a deleted topic came back"
        if self.is_young:
            assert log is not None
            assert log.snapshot.log_start_offset == 0, "it begins where another one began"
            offsets = CleanerOffsets(disk, LOG_DIR)
            assert offsets.load() == []
            assert offsets.first_dirty.get(("t", 0)) is None, "taken for clean"
            assert offsets.horizons.get(("t", 0)) is None
        super().judge(disk)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_topic_made_again_begins_anew_at_every_call(seed: int, *, compacted: bool) -> None:
    world = RecreationWorld(seed, 2)
    world.create()
    world.live(compacted=compacted)
    for _ in range(2):
        world.delete()
        world.create_again()
        world.append()
        world.sync()
        world.live(compacted=compacted)
    assert world.points > 100
    assert world.damaged == 0


def test_acknowledged_records_of_a_topic_made_again_outlive_a_kill() -> None:
    """Log start 100, deleted, made again, three records with acks=all, kill -9."""
    world = RecreationWorld(1, 0)
    world.create()
    for _ in range(100):
        world.append()
    world.sync()
    world.delete_records(100)
    world.manager.checkpoint()
    world.delete()
    world.create_again()
    for _ in range(3):
        world.append()
        world.sync()
    world.kill()
    snapshot = world.log.snapshot
    assert (snapshot.log_start_offset, snapshot.log_end_offset) == (0, 3)


def test_a_torn_tail_of_a_topic_made_again_is_no_damage() -> None:
    world = RecreationWorld(2, 0)
    world.create()
    for _ in range(50):
        world.append()
    world.sync()
    world.manager.checkpoint()
    world.delete()
    world.create_again()
    world.append()
    world.sync()
    world.append()
    name = f"{LOG_DIR}/t-0/{0:020d}.log"
    file = world.fs.open(name)
    file.truncate(file.size() - 5)
    world.kill()
    assert world.log.corruption is None
    assert world.log.snapshot.log_end_offset == 1
