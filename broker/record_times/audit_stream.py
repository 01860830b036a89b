"""Audit stream: offsets and timestamps by client, as rows of a topic, one a minute.

A record carries neither client id nor address, so afterwards nobody can tell whose clock was wrong.
With `horolog.audit.topic` set, each client's appends to a partition are added up in memory, and
every `horolog.audit.interval.ms` become JSON rows of that topic, which jobs join by offset range.
Without it this does not exist. The topic is internal, as `__consumer_offsets` is: nobody else
writes, changes or deletes it. Nothing here delays a producer, and nothing fails one: what cannot
be written waits for the next time, clients beyond a bound count as `others`. Event loop only.

A row: topic, partition, `first` and `last` offset stored, batches, records and bytes stored,
client_id, address, principal, `from_ms` and `to_ms` of arrival, `skew_min_ms` and `skew_max_ms`
(arrival minus the latest record time of a batch), `dirty`: records by direction, reason and action.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from broker.record_times.offenders import MAX_CLIENT_ID
from broker.record_times.own_topic import ROWS_A_BATCH, OwnTopic
from broker.runtime.event_log import event
from protocol.errors import KafkaError
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from broker.partitions.partition_services import Sender
    from storage.env import Clock
    from storage.segment.log_snapshot import AppendResult
    from storage.validation.dirty_timestamps import DirtyTimes

VERSION = 1
MAX_ROWS = 10_000  # of one interval; what is beyond goes to one row a partition
OTHERS = "others"


class Writer(NamedTuple):
    """A client, as far as it is known, and a partition that it writes to."""

    topic: str
    partition: int
    client_id: str
    address: str
    principal: str


@dataclass(slots=True)
class Appends:
    """Appends of a client since the last row."""

    from_ms: int
    to_ms: int = 0
    first: int | None = None
    last: int | None = None
    batches: int = 0
    records: int = 0
    bytes: int = 0
    skew_min_ms: int | None = None
    skew_max_ms: int | None = None
    dirty: dict[str, int] = field(default_factory=dict)

    def take_in(self, older: Appends) -> None:
        """Add what was written before, and has no row yet."""
        self.from_ms = older.from_ms
        self.first = self.first if older.first is None else older.first
        self.last = older.last if self.last is None else self.last
        self.batches += older.batches
        self.records += older.records
        self.bytes += older.bytes
        lowest = [each for each in (older.skew_min_ms, self.skew_min_ms) if each is not None]
        highest = [each for each in (older.skew_max_ms, self.skew_max_ms) if each is not None]
        self.skew_min_ms, self.skew_max_ms = min(lowest, default=None), max(highest, default=None)
        for what, count in older.dirty.items():
            self.dirty[what] = self.dirty.get(what, 0) + count


class AuditStream:
    """The sums of the running interval, and their way into the topic."""

    def __init__(self, topic: OwnTopic, clock: Clock) -> None:
        """Nothing is known yet."""
        self._topic = topic
        self._clock = clock
        self._writers: dict[Writer, Appends] = {}

    def stored(
        self, partition: Partition, sender: Sender, result: AppendResult, count: int, size: int
    ) -> None:
        """A batch of `count` records and `size` bytes was stored."""
        appends = self._of(partition, sender)
        if appends.first is None:
            appends.first = result.base_offset
        appends.last = result.last_offset
        appends.batches += 1
        appends.records += count
        appends.bytes += size
        skew = result.skew_ms
        if skew is not None:
            lowest, highest = appends.skew_min_ms, appends.skew_max_ms
            appends.skew_min_ms = skew if lowest is None else min(lowest, skew)
            appends.skew_max_ms = skew if highest is None else max(highest, skew)
        if result.dirty is not None:
            _count(appends, result.dirty)

    def refused(self, partition: Partition, sender: Sender, dirty: DirtyTimes) -> None:
        """A batch was refused for its times."""
        _count(self._of(partition, sender), dirty)

    async def flush(self) -> None:
        """Write what there is, and begin again. What cannot be written stays."""
        waiting, self._writers = list(self._writers.items()), {}
        while waiting:
            rows = [_row(*each) for each in waiting[:ROWS_A_BATCH]]
            try:
                await self._topic.append(rows)
            except (KafkaError, StorageError) as error:
                event(
                    "audit_not_written", "warning",
                    topic=self._topic.name, rows=len(waiting), error=error,
                )  # fmt: skip
                self._put_back(waiting)
                return
            del waiting[:ROWS_A_BATCH]

    def _put_back(self, waiting: list[tuple[Writer, Appends]]) -> None:
        for writer, appends in waiting:
            newer = self._writers.setdefault(writer, appends)
            if newer is not appends:
                newer.take_in(appends)

    def _of(self, partition: Partition, sender: Sender) -> Appends:
        log, now_ms = partition.log, self._clock.now_ms()
        writer = Writer(
            log.topic,
            log.partition,
            sender.client_id[:MAX_CLIENT_ID],
            sender.client_host,
            str(sender.principal),
        )
        appends = self._writers.get(writer)
        if appends is None:
            if len(self._writers) >= MAX_ROWS:
                writer = writer._replace(client_id=OTHERS, address="", principal=OTHERS)
            appends = self._writers.setdefault(writer, Appends(now_ms))
        appends.to_ms = now_ms
        return appends


def _count(appends: Appends, dirty: DirtyTimes) -> None:
    for each in dirty.findings:
        what = f"{each.direction}: {each.reason}: {each.action}"
        appends.dirty[what] = appends.dirty.get(what, 0) + each.count


def _row(writer: Writer, appends: Appends) -> tuple[bytes, bytes]:
    content = {"v": VERSION, **writer._asdict(), **asdict(appends)}
    key = f"{writer.topic}-{writer.partition}"
    return key.encode(), json.dumps(content, separators=(",", ":")).encode()
