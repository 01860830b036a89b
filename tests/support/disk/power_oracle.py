"""Checks of a broker that lost its power: every record and position, one by one."""

import time
from collections.abc import Iterator
from contextlib import closing

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.support.disk.power_load import (
    KEYED,
    MOVED,
    PARTITIONS,
    PLAIN,
    RECORDS_OF_A_TRANSACTION,
    Promises,
    Writer,
    key_of,
    time_of,
    value_of,
)

SILENCE_SECONDS = 30


def broken_promises(address: str, writers: list[Writer], promises: Promises) -> Iterator[str]:
    """One line for each promise that is broken; nobody is at work meanwhile."""
    for writer in writers:
        promised = dict(writer.acknowledged)
        found = read_all(address, writer.topic, writer.partition)
        check = keyed_lies if writer.topic == KEYED else plain_lies
        name = f"{writer.topic}-{writer.partition}"
        yield from (f"{name}: {lie}" for lie in check(found, promised))
        if writer.topic == PLAIN:
            yield from (f"{name}: {lie}" for lie in time_lies(address, writer.partition, found))
    yield from transaction_lies(address, promises)


def read_all(address: str, topic: str, partition: int) -> list[Message]:
    """Records that a reader of committed ones gets from the first offset to the stable end."""
    options = {
        "bootstrap.servers": address, "group.id": "oracle", "enable.auto.commit": False,
        "isolation.level": "read_committed", "fetch.wait.max.ms": 10,
        "enable.partition.eof": True, "log_level": 0,
    }  # fmt: skip
    found: list[Message] = []
    with closing(Consumer(options)) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0)])
        until = time.monotonic() + SILENCE_SECONDS
        while True:
            batch = consumer.consume(1000, timeout=0.05)
            assert time.monotonic() < until, f"{topic}-{partition}: no end after {len(found)}"
            for message in batch:
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    return found
                else:
                    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE, error


def sequence_of(message: Message) -> int:
    return int((message.value() or b"").partition(b":")[0])


def is_whole(topic: str, message: Message) -> bool:
    """True when a record is, byte for byte, one that was sent."""
    sequence = sequence_of(message)
    is_same = message.value() == value_of(sequence) and message.key() == key_of(topic, sequence)
    return is_same and message.timestamp()[1] == time_of(sequence)


def plain_lies(found: list[Message], promised: dict[int, int]) -> Iterator[str]:
    """Offsets have no hole, each promised record is there, none came twice."""
    if [message.offset() for message in found] != list(range(len(found))):
        yield "its offsets have a hole"
    strange = [message.offset() for message in found if not is_whole(PLAIN, message)]
    if strange:
        yield f"offsets {strange[:5]} hold what nobody sent"
    stored = {message.offset(): sequence_of(message) for message in found}
    lost = [offset for offset, sequence in promised.items() if stored.get(offset) != sequence]
    if lost:
        yield f"{len(lost)} acknowledged records are lost, at offsets {sorted(lost)[:5]}"
    if len(set(stored.values())) != len(stored):
        yield "a record of an idempotent producer came twice"


def keyed_lies(found: list[Message], promised: dict[int, int]) -> Iterator[str]:
    """The latest promised record of each key is there, or a later one of that key."""
    strange = [message.offset() for message in found if not is_whole(KEYED, message)]
    if strange:
        yield f"offsets {strange[:5]} hold what nobody sent"
    latest = {message.key(): (message.offset(), sequence_of(message)) for message in found}
    wanted = {
        key_of(KEYED, sequence): (offset, sequence) for offset, sequence in sorted(promised.items())
    }
    lost = [key for key, at in wanted.items() if latest.get(key, (-1, -1)) < at]
    if lost:
        yield f"the latest record of keys {lost[:5]} is lost ({len(lost)} keys)"


def time_lies(address: str, partition: int, found: list[Message]) -> Iterator[str]:
    """A look-up by time answers what a scan does."""
    options = {"bootstrap.servers": address, "group.id": "oracle", "log_level": 0}
    with closing(Consumer(options)) as consumer:
        for message in found[:: max(1, len(found) // 5)]:
            wanted = message.timestamp()[1]
            expected = next(m.offset() for m in found if m.timestamp()[1] >= wanted)
            asked = [TopicPartition(PLAIN, partition, wanted)]
            answered = consumer.offsets_for_times(asked, SILENCE_SECONDS)[0].offset
            if answered != expected:
                yield f"the first offset at {wanted} is {expected}, and it says {answered}"


def transaction_lies(address: str, promises: Promises) -> Iterator[str]:
    """Transactions are there whole or not at all, as promised; positions agree with them."""
    seen = [
        [(message.value() or b"").split(b":") for message in read_all(address, MOVED, partition)]
        for partition in range(PARTITIONS)
    ]
    numbers = [int(number) for number, _ in seen[0]]
    visible = set(numbers)
    if any(values != seen[0] for values in seen) or len(numbers) != RECORDS_OF_A_TRANSACTION * len(
        visible
    ):
        yield "a transaction is seen in part, or twice"
    if promises.committed - visible:
        yield f"committed transactions {sorted(promises.committed - visible)[:5]} are not seen"
    if promises.aborted & visible:
        yield f"aborted transactions {sorted(promises.aborted & visible)[:5]} are seen"
    moved = position_of(address, "mover", TopicPartition(PLAIN, 0))
    if moved != max(visible, default=-1001):
        latest = max(visible, default=None)
        yield f"the last committed transaction is {latest}, its position {moved}"
    read = position_of(address, "reader", TopicPartition(PLAIN, 1))
    if promises.position and not promises.position <= read <= promises.asked_position:
        yield f"position {promises.position} was committed, and it says {read}"


def position_of(address: str, group: str, partition: TopicPartition) -> int:
    """A committed offset; -1001 if there is none."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    asked = [ConsumerGroupTopicPartitions(group, [partition])]
    answer = admin.list_consumer_group_offsets(asked)[group].result(SILENCE_SECONDS)
    return int(answer.topic_partitions[0].offset)
