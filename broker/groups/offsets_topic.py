"""`__consumer_offsets`: where groups are remembered. A compacted topic of our own log.

It is made when it is first needed. A group's records all go to the partition that Java's hash of
its id gives, so a real Kafka finds them. A write is done when it is as durable as acks=all asks.
Used from the event loop only, but for `read`.
"""

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.deferred import Deferred
from broker.logs import event
from broker.partition import ACKS_ALL, Partition
from broker.topic_creation import NewTopic, check_partition_limit
from broker.topic_names import CONSUMER_OFFSETS
from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.errors import StorageError
from storage.snapshot import AppendResult

if TYPE_CHECKING:
    from broker.app import Broker

Row = tuple[bytes, bytes | None]
"""A key and its value; no value takes the key's last one back."""

_MASK = 0xFFFFFFFF
_SIGN = 0x80000000


class OffsetsTopic:
    """The topic, as the groups write to it."""

    def __init__(self, broker: "Broker") -> None:
        """Nothing is looked up before the first write."""
        self._broker = broker
        self._maker: asyncio.Task[None] | None = None

    @property
    def partitions(self) -> Sequence[Partition]:
        """Its partitions; none while it does not exist."""
        topic = self._broker.catalog.image.topics.get(CONSUMER_OFFSETS)
        return topic.partitions if topic is not None else ()

    @property
    def partition_count(self) -> int:
        """How many it has, or will have."""
        settings = self._broker.config.broker_config
        return len(self.partitions) or settings.offsets_topic_num_partitions

    def index_of(self, group_id: str) -> int:
        """The number of the partition that remembers a group."""
        return partition_of(group_id, self.partition_count)

    async def make(self) -> None:
        """Makes it unless it is there. KafkaError when that is impossible."""
        if not self.partitions:
            await asyncio.shield(self._making())

    def write(self, group_id: str, rows: Sequence[Row]) -> Deferred[None]:
        """Writes rows of one group as one batch, all or nothing.

        Fails with COORDINATOR_NOT_AVAILABLE (15), NOT_COORDINATOR (16) for a sick disk, or
        MESSAGE_TOO_LARGE (10).
        """
        answer: Deferred[None] = Deferred()
        if self.partitions:
            self._append(group_id, rows, answer)
        else:
            self._making().add_done_callback(partial(self._made, group_id, rows, answer))
        return answer

    def _append(self, group_id: str, rows: Sequence[Row], answer: Deferred[None]) -> None:
        now_ms = self._broker.clock.now_ms()
        codec = Codec(self._broker.config.broker_config.offsets_topic_compression_codec)
        batch = build_batch([(now_ms, key, value) for key, value in rows], codec=codec)
        partition = self.partitions[self.index_of(group_id)]
        try:
            outcome = partition.append(memoryview(batch), ACKS_ALL)
        except KafkaError as error:
            answer.fail(as_coordinator_says(error))
            return
        done = partial(self._appended, (partition, len(batch), len(rows)), answer)
        if isinstance(outcome, Deferred):
            outcome.listen(done)
        else:
            done(outcome, None)

    def _appended(
        self,
        written: tuple[Partition, int, int],
        answer: Deferred[None],
        result: AppendResult | None,
        error: BaseException | None,
    ) -> None:
        if result is None:
            assert error is not None
            answer.fail(as_coordinator_says(error) if isinstance(error, KafkaError) else error)
            return
        partition, size_bytes, count = written
        self._broker.probes.appended(partition.topic, size_bytes, count, result.skew_ms)
        answer.resolve(None)

    # --- making it ---

    def _making(self) -> asyncio.Task[None]:
        if self._maker is None or self._maker.done():
            self._maker = asyncio.get_running_loop().create_task(self._make())
        return self._maker

    async def _make(self) -> None:
        broker = self._broker
        settings = broker.config.broker_config
        async with broker.catalog.changing:
            if self.partitions:
                return
            count = settings.offsets_topic_num_partitions
            overrides = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.offsets_topic_segment_bytes),
            }
            try:
                check_partition_limit(broker, count)
                topic = NewTopic(CONSUMER_OFFSETS, broker.env.rng.uuid(), count, overrides)
                await broker.catalog.create([topic])
            except (KafkaError, StorageError) as error:
                event("offsets_topic_not_made", "error", error=error)
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    def _made(
        self,
        group_id: str,
        rows: Sequence[Row],
        answer: Deferred[None],
        maker: "asyncio.Future[None]",
    ) -> None:
        if maker.cancelled():
            answer.fail(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The broker is stopping"))
        elif (error := maker.exception()) is not None:
            answer.fail(error)
        else:
            self._append(group_id, rows, answer)


def as_coordinator_says(error: KafkaError) -> KafkaError:
    """What an append's error is to a member of a group, as Kafka's coordinator says it."""
    match error.code:
        case ErrorCode.KAFKA_STORAGE_ERROR | ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return KafkaError(ErrorCode.NOT_COORDINATOR, error.message)
        case ErrorCode.NOT_ENOUGH_REPLICAS | ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
        case _:
            return error


def partition_of(group_id: str, partition_count: int) -> int:
    """Java's `hashCode` of the id, without its sign, modulo the number of partitions."""
    value = 0
    for unit in _utf16(group_id):
        value = (31 * value + unit) & _MASK
    if value & _SIGN:
        value = (-value) & _MASK if value != _SIGN else 0
    return value % partition_count


def _utf16(text: str) -> Iterator[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        yield data[at] << 8 | data[at + 1]
