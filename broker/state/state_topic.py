"""The topics in which coordinators remember: topics of our own log, compacted unless planned else.

One is made when it is first needed. What belongs to one id (of a group, of a transactional
producer) all goes to the partition that Java's hash of the id gives, so a real Kafka finds it. A
write is done when it is as durable as acks=all asks. Used from the event loop only.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from broker.partitions.partition import ACKS_ALL, Partition
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from protocol.errors import ErrorCode, KafkaError
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.errors import StorageError
from storage.segment.log_snapshot import AppendResult
from storage.validation.internal_batch import own_batch

if TYPE_CHECKING:
    from broker.partitions.leadership import Leadership
    from broker.state.services import StateServices
    from config.broker import BrokerConfig

Row = tuple[bytes, bytes | None]
"""A key and its value; no value takes the key's last one back."""

_MASK = 0xFFFFFFFF
_SIGN = 0x80000000


class StateTopicPlan(NamedTuple):
    """Properties of the topic when it is created."""

    partition_count: int
    segment_bytes: int
    compression_type: str
    codec: Codec = Codec.NONE
    """Codec of its records."""
    cleanup: Sequence[tuple[str, str]] = (("cleanup.policy", "compact"),)
    """Settings that say which records go."""


class TransactionalProducer(NamedTuple):
    """The transaction that what is written belongs to."""

    producer_id: int
    producer_epoch: int


class StateTopic:
    """The topic, as its coordinator writes to it."""

    def __init__(
        self, services: "StateServices", name: str, plan: "Callable[[BrokerConfig], StateTopicPlan]"
    ) -> None:
        """Nothing is looked up before the first write."""
        self.name = name
        self._services = services
        self._plan_of = plan
        self._maker: asyncio.Task[None] | None = None

    @property
    def partitions(self) -> Sequence[Partition]:
        """Its partitions; none while it does not exist."""
        topic = self._services.topics.image.topics.get(self.name)
        return topic.partitions if topic is not None else ()

    @property
    def partition_count(self) -> int:
        """Number of partitions that it has, or will have."""
        return len(self.partitions) or self._plan.partition_count

    @property
    def _plan(self) -> StateTopicPlan:
        return self._plan_of(self._services.config.broker_config)

    @property
    def batch_bytes(self) -> int:
        """The most bytes that what is written at once may take."""
        partitions = self.partitions
        if partitions:
            return partitions[0].log.config.max_message_bytes
        return self._services.config.topic_config(self.name).max_message_bytes

    def index_of(self, owner: str) -> int:
        """The number of the partition that remembers a group, or a transactional id."""
        return partition_of(owner, self.partition_count)

    def leader_elsewhere(self, owner: str) -> "Leadership | None":
        """The leader of that partition, if it is another node; None while there is no topic."""
        partitions = self.partitions
        return partitions[self.index_of(owner)].leader_elsewhere if partitions else None

    async def make(self) -> None:
        """Makes it unless it is there. KafkaError when that is impossible."""
        if not self.partitions:
            await asyncio.shield(self._making())

    def write(
        self,
        owner: str,
        rows: Sequence[Row],
        transaction: TransactionalProducer | None = None,
        *,
        acks: int = ACKS_ALL,
    ) -> Deferred[None]:
        """Writes rows of one owner as one batch, all or nothing.

        With `acks` of 1 it is done when it is written, and durable before anything written later.
        Fails with COORDINATOR_NOT_AVAILABLE (15), NOT_COORDINATOR (16) for a sick disk and for what
        may be durable yet, MESSAGE_TOO_LARGE (10), or as part of a `transaction`
        INVALID_PRODUCER_EPOCH (47).
        """
        answer: Deferred[None] = Deferred()
        if self.partitions:
            self._append(owner, rows, transaction, acks, answer)
        else:
            write = partial(self._append, owner, rows, transaction, acks, answer)
            self._making().add_done_callback(partial(self._made, write, answer))
        return answer

    def _append(
        self,
        owner: str,
        rows: Sequence[Row],
        transaction: TransactionalProducer | None,
        acks: int,
        answer: Deferred[None],
    ) -> None:
        now_ms = self._services.clock.now_ms()
        records = [(now_ms, key, value) for key, value in rows]
        partitions = self.partitions
        partition = partitions[partition_of(owner, len(partitions))]
        codec = self._plan.codec
        try:
            if codec is Codec.NONE:  # before the work of building it
                _check_size(sum(len(key) + len(value or b"") for key, value in rows), partition)
            if transaction is None:
                batch = build_batch(records, codec=codec)
            else:
                producer_id, epoch = transaction
                batch = build_batch(
                    records, codec=codec, producer_id=producer_id, producer_epoch=epoch,
                    transactional=True,
                )  # fmt: skip
            _check_size(len(batch), partition)
            outcome = partition.writer.append_own(own_batch(batch, now_ms), acks)
        except Exception as error:  # noqa: BLE001 - who waits for this must hear of it
            answer.fail(as_coordinator_says(error) if isinstance(error, KafkaError) else error)
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
        self._services.probes.appended(partition.topic, size_bytes, count, result.skew_ms)
        answer.resolve(None)

    # --- making it ---

    def _making(self) -> asyncio.Task[None]:
        if self._maker is None or self._maker.done():
            self._maker = asyncio.get_running_loop().create_task(self._make())
        return self._maker

    async def _make(self) -> None:
        topics, plan = self._services.topics, self._plan
        async with topics.changing:
            if self.partitions:
                return
            overrides = {
                **dict(plan.cleanup),
                "compression.type": plan.compression_type,
                "segment.bytes": str(plan.segment_bytes),
            }
            try:
                rules = self._services.rules
                await topics.create([rules.own_topic(self.name, plan.partition_count, overrides)])
            except (KafkaError, StorageError) as error:
                event("state_topic_not_made", "error", topic=self.name, error=error)
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error

    def _made(
        self,
        write: Callable[[], None],
        answer: Deferred[None],
        maker: "asyncio.Future[None]",
    ) -> None:
        if maker.cancelled():
            answer.fail(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The broker is stopping"))
        elif (error := maker.exception()) is not None:
            answer.fail(error)
        else:
            write()


def _check_size(size_bytes: int, partition: Partition) -> None:
    limit = partition.log.config.max_message_bytes
    if size_bytes > limit:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The batch has {size_bytes} bytes or more: max.message.bytes allows {limit}",
        )


def as_coordinator_says(error: KafkaError) -> KafkaError:
    """Turns an append's error into the error of Kafka's coordinator.

    Except REQUEST_TIMED_OUT, of a write that may be durable yet: COORDINATOR_NOT_AVAILABLE, as
    Kafka says, is here of what was not written. Clients do the same after both.
    """
    match error.code:
        case (
            ErrorCode.KAFKA_STORAGE_ERROR
            | ErrorCode.NOT_LEADER_OR_FOLLOWER
            | ErrorCode.REQUEST_TIMED_OUT
        ):
            return KafkaError(ErrorCode.NOT_COORDINATOR, error.message)
        case ErrorCode.NOT_ENOUGH_REPLICAS | ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
        case _:
            return error


@lru_cache(maxsize=1024)
def partition_of(owner: str, partition_count: int) -> int:
    """Java's `hashCode` of the id, without its sign, modulo the number of partitions."""
    value = 0
    for unit in _utf16(owner):
        value = (31 * value + unit) & _MASK
    if value & _SIGN:
        value = (-value) & _MASK if value != _SIGN else 0
    return value % partition_count


def _utf16(text: str) -> Iterator[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        yield data[at] << 8 | data[at + 1]
