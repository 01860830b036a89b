"""One call of the disk fails while a log moves to the store: nothing that was promised is lost."""

import random
from collections.abc import Callable

import pytest

from protocol.errors import KafkaError
from protocol.records.builder import build_batch
from storage.errors import StorageError
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_crash_world import read_all
from tests.support.tier.tier_life import NOW, TierLife

EVERY = 9


class FailingLife:
    """A life by one seed, in which calls may fail, and what it promised."""

    def __init__(self, seed: int, fail_at: int) -> None:
        self.dice = random.Random(seed)
        self.life = TierLife(MemoryStore())
        self.life.create()
        self.life.fs.fail_at = (fail_at, "eio")
        self.durable: dict[int, bytes | None] = {}
        self.start = 0
        self.count = 0

    def live(self) -> None:
        life = self.life
        for _ in range(8):
            for _ in range(self.dice.randint(3, 6)):
                self._try(self._append)
            if self._try(life.sync) and life.log.failed is None:
                self._try(self._promised)
            for step in (life.copy_next, life.copy_next, life.drop):
                self._try(step)
            others = (self._delete, life.manager.checkpoint, life.remove_files, self._retain)
            self._try(self.dice.choice(others))
            self._try(life.expire)

    def _promised(self) -> None:
        self.durable |= read_all(self.life.log)

    def _append(self) -> None:
        self.count += 1
        value = b"%d:" % self.count + bytes(self.dice.randrange(200))
        batch = build_batch([(NOW + self.count, None, value)])
        self.life.log.append(memoryview(batch), acks_all=True, leader_epoch=0)

    def _delete(self) -> None:
        snapshot = self.life.log.snapshot
        before = min(snapshot.log_start_offset + self.dice.randint(0, 6), snapshot.high_watermark)
        self.start = self.life.log.delete_records(before)

    def _retain(self) -> None:
        snapshot = self.life.log.snapshot
        second = snapshot.segments[:3][-1].base_offset
        self.life.remove_before(min(second, snapshot.high_watermark))

    @staticmethod
    def _try(step: Callable[[], object]) -> bool:
        try:
            step()
        except (StorageError, KafkaError):
            return False
        return True

    def judge(self) -> None:
        """After a start nothing that was promised is missing, and copying goes on."""
        life = self.life
        life.fs = life.fs.after_crash(self.count) if self.dice.random() < 0.5 else life.fs
        life.kill()
        found, snapshot = read_all(life.log), life.log.snapshot
        assert snapshot.log_start_offset >= self.start
        assert list(found) == list(range(snapshot.log_start_offset, snapshot.log_end_offset))
        for offset, value in self.durable.items():
            assert offset < snapshot.log_start_offset or found.get(offset) == value
        life.copy_all()
        life.drop()
        life.expire()
        assert read_all(life.log) == found


@pytest.mark.parametrize("seed", range(3))
def test_one_failing_call_costs_nothing_that_was_promised(seed: int) -> None:
    made = FailingLife(seed, 0)
    began = made.life.fs.calls
    made.live()
    made.judge()
    for fail_at in range(began + 1 + seed, began + 500, EVERY):
        life = FailingLife(seed, fail_at)
        life.live()
        life.judge()
