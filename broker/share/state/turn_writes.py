"""Rows of one turn of the loop, written together: one batch for each state partition."""

import asyncio
from functools import partial
from typing import NamedTuple

from broker.runtime.deferred import Deferred
from broker.state.state_topic import Row, StateTopic

RECORD_BYTES = 32
"""Most that a batch takes for one record, and for itself by the record, beside key and value."""
BATCH_BYTES = 128


class WaitingRow(NamedTuple):
    owner: str
    row: Row
    answer: Deferred[None]

    @property
    def size_bytes(self) -> int:
        key, value = self.row
        return len(key) + len(value or b"") + RECORD_BYTES


class TurnWrites:
    """Writes of share partitions that wait for the end of this turn of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, topic: StateTopic) -> None:
        """Nothing waits."""
        self._loop = loop
        self._topic = topic
        self._waiting: list[WaitingRow] = []

    def add(self, owner: str, row: Row) -> Deferred[None]:
        """Writes a row in order of the calls; done when it is durable. Fails as the topic does."""
        if not self._waiting:
            self._loop.call_soon(self.flush)
        answer: Deferred[None] = Deferred()
        self._waiting.append(WaitingRow(owner, row, answer))
        return answer

    def fits(self, row_bytes: int) -> bool:
        """True when a row with so many bytes of key and value may be written."""
        return BATCH_BYTES + RECORD_BYTES + row_bytes <= self._topic.batch_bytes

    def flush(self) -> None:
        """Writes what waits."""
        waiting, self._waiting = self._waiting, []
        by_partition: dict[int, list[WaitingRow]] = {}
        for each in waiting:
            by_partition.setdefault(self._topic.index_of(each.owner), []).append(each)
        for group in by_partition.values():
            self._write(group)

    def _write(self, group: list[WaitingRow]) -> None:
        """In as few batches as fit."""
        most, batch, size = self._topic.batch_bytes, list[WaitingRow](), BATCH_BYTES
        for each in group:
            if batch and size + each.size_bytes > most:
                self._write_batch(batch)
                batch, size = [], BATCH_BYTES
            batch.append(each)
            size += each.size_bytes
        self._write_batch(batch)

    def _write_batch(self, batch: list[WaitingRow]) -> None:
        written = self._topic.write(batch[0].owner, [each.row for each in batch])
        written.listen(partial(_settle, batch))


def _settle(batch: list[WaitingRow], _: None, error: BaseException | None) -> None:
    for each in batch:
        if error is None:
            each.answer.resolve(None)
        else:
            each.answer.fail(error)
