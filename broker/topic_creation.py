"""What may become a topic: the rules of CreateTopics, CreatePartitions and of automatic creation.

Everything is judged before anything is made. The rules and their error codes are those of Kafka's
controller, for a cluster of one broker.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from broker.topic_names import check_name, find_collision, is_internal
from config.errors import ConfigError, ConfigRequestError
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.app import Broker

DEFAULT = -1


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that may be made."""

    name: str
    topic_id: UUID
    partition_count: int
    overrides: Mapping[str, str | None]


def plan_topic(
    broker: "Broker",
    name: str,
    partition_count: int,
    overrides: Mapping[str, str | None],
    *,
    planned: Sequence[NewTopic] = (),
) -> NewTopic:
    """Judges a topic beside those that exist and those `planned` in the same request."""
    image = broker.catalog.image
    check_name(name)
    if is_internal(name):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' is the broker's own to make."
        )
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    neighbour = find_collision(name, [*image.topics, *(topic.name for topic in planned)])
    if neighbour is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {neighbour}",
        )
    check_partition_limit(broker, partition_count + sum(each.partition_count for each in planned))
    check_overrides(broker, name, overrides)
    return NewTopic(name, broker.env.rng.uuid(), partition_count, overrides)


def partition_count_of(
    broker: "Broker",
    requested: int,
    replication_factor: int,
    assignments: Mapping[int, Sequence[int]],
) -> int:
    """How many partitions a CreateTopics entry means, by number or by assignment."""
    if assignments:
        if replication_factor != DEFAULT or requested != DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "A manual partition assignment was specified, but the replication factor or the "
                "number of partitions was not set to -1.",
            )
        if sorted(assignments) != list(range(len(assignments))):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual assignment must name partitions 0, 1, 2 and so on, without a gap.",
            )
        check_assignments(broker, assignments.values())
        return len(assignments)
    if replication_factor not in {DEFAULT, 1}:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor {replication_factor} is not possible: there is 1 broker.",
        )
    if requested == 0 or requested < DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    return broker.config.broker_config.num_partitions if requested == DEFAULT else requested


def check_assignments(broker: "Broker", assignments: Iterable[Sequence[int]]) -> None:
    """Every partition must lie on this broker, once."""
    for replicas in assignments:
        if list(replicas) != [broker.node_id]:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual assignment {list(replicas)} must be [{broker.node_id}]: "
                "this broker stands alone.",
            )


def check_partition_limit(broker: "Broker", more: int) -> None:
    """`horolog.max.partitions` bounds the partitions of all topics together."""
    limit = broker.config.broker_config.horolog_max_partitions
    if broker.catalog.image.partition_count + more > limit:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{more} more partitions would be above horolog.max.partitions, which is {limit}.",
        )


def check_overrides(broker: "Broker", topic: str, overrides: Mapping[str, str | None]) -> None:
    """Unknown or impossible settings are refused with INVALID_CONFIG (40)."""
    try:
        broker.config.prepare_topic(topic, overrides)
    except ConfigError as error:
        raise config_refusal(error) from error


def config_refusal(error: ConfigError) -> KafkaError:
    """The wire's code for a refused setting."""
    malformed = isinstance(error, ConfigRequestError)
    code = ErrorCode.INVALID_REQUEST if malformed else ErrorCode.INVALID_CONFIG
    return KafkaError(code, error.message)


async def auto_create(names: Iterable[str], broker: "Broker") -> dict[str, int]:
    """Makes the topics that a Metadata request names; the error codes of those refused."""
    refused: dict[str, int] = {}
    async with broker.catalog.changing:
        planned: list[NewTopic] = []
        for name in names:
            if name in broker.catalog.image.topics:  # another client was faster
                continue
            count = broker.config.broker_config.num_partitions
            try:
                planned.append(plan_topic(broker, name, count, {}, planned=planned))
            except KafkaError as error:
                refused[name] = error.code
        try:
            await broker.catalog.create(planned)
        except StorageError:
            refused.update((topic.name, ErrorCode.KAFKA_STORAGE_ERROR) for topic in planned)
    return refused
