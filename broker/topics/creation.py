"""Rules of CreateTopics, CreatePartitions and automatic creation.

Everything is judged before anything is made. The rules and their error codes are those of Kafka's
controller, for a cluster of one broker.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from broker.topics.names import check_name, collision_key, find_collision
from broker.topics.new_topic import NewTopic
from config.errors import ConfigError, ConfigRequestError
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.guards.disk_space import DiskSpace
    from broker.topics.topic_catalog import TopicCatalog
    from config.store import ConfigStore
    from storage.env import Rng

DEFAULT = -1
MAX_AUTO_CREATED = 1000  # topics that one Metadata request makes
ASKED_AGAIN = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
JUDGED_AT_ONCE = 50  # topics, until others may run


def as_many_as_wanted(_: int) -> None:
    """Allows a topic whatever its number of partitions."""


class TopicPlan:
    """The topics that one request may make, each judged beside those that exist and each other.

    Used under the catalog's `changing`, so that what was judged stays true.
    """

    def __init__(
        self,
        rules: "TopicRules",
        taken: Iterable[str],
        uuid: Callable[[], UUID],
        allow: Callable[[int], None],
    ) -> None:
        """Nothing is planned yet; `taken` are the names of the topics that exist.

        `allow(partitions)` is the last to refuse a topic, with a KafkaError.
        """
        self.topics: list[NewTopic] = []
        self._rules = rules
        self._uuid = uuid
        self._allow = allow
        self._partition_count = 0
        self._names = {collision_key(name): name for name in taken}

    def add(
        self,
        name: str,
        partition_count: int,
        overrides: Mapping[str, str | None],
        *,
        own: bool = False,
    ) -> NewTopic:
        """Plans a topic, `own`: one of the broker's; raises the KafkaError that refuses it."""
        self._rules.check_new_name(name, own=own)
        neighbour = find_collision(name, self._names)
        if neighbour is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {neighbour}",
            )
        self._rules.check_partition_limit(self._partition_count + partition_count)
        self._rules.check_overrides(name, overrides)
        self._allow(partition_count)
        topic = NewTopic(name, self._uuid(), partition_count, overrides)
        self.topics.append(topic)
        self._partition_count += partition_count
        self._names[collision_key(name)] = name
        return topic

    async def breathe(self, number: int) -> None:
        """Lets others run now and then while a request with very many topics is judged."""
        if number % JUDGED_AT_ONCE == 0:
            await asyncio.sleep(0)


class TopicRules:
    """The rules for new topics and partitions, for a cluster of one broker."""

    def __init__(
        self,
        topics: "TopicCatalog",
        config: "ConfigStore",
        disk_space: "DiskSpace",
        rng: "Rng",
        node_id: int,
    ) -> None:
        """Judges beside the topics that exist when it is asked; `rng` makes topic ids."""
        self._topics = topics
        self._config = config
        self._disk_space = disk_space
        self._rng = rng
        self._node_id = node_id
        self.living_nodes: Callable[[], int] = lambda: 1
        """Number of brokers; in a fleet more than one."""

    def plan(self, allow: Callable[[int], None] = as_many_as_wanted) -> TopicPlan:
        """An empty plan beside the topics that exist now. Hold the catalog's `changing`."""
        return TopicPlan(self, self._topics.image.topics, self._rng.uuid, allow)

    def check_new_name(self, name: str, *, own: bool) -> None:
        """Raises the KafkaError that refuses a topic of this name; `own`: the broker makes it."""
        check_name(name)
        self._disk_space.check_room()
        if not own and name in self._topics.internal_topics:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' can be created by the broker only.",
            )
        if name in self._topics.image.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")

    def own_topic(
        self, name: str, partition_count: int, overrides: Mapping[str, str | None]
    ) -> NewTopic:
        """A topic of a coordinator. Raises POLICY_VIOLATION (44) beyond the limit of partitions."""
        self.check_partition_limit(partition_count)
        return NewTopic(name, self._rng.uuid(), partition_count, overrides)

    def partition_count_of(
        self,
        requested: int,
        replication_factor: int,
        assignments: Mapping[int, Sequence[int]],
    ) -> int:
        """Number of partitions that a CreateTopics entry asks for, by number or by assignment.
        Raises KafkaError.
        """
        if assignments:
            if replication_factor != DEFAULT or requested != DEFAULT:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    "A manual partition assignment was specified, but the replication factor or "
                    "the number of partitions was not set to -1.",
                )
            if sorted(assignments) != list(range(len(assignments))):
                raise KafkaError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    "The manual assignment must name partitions 0, 1, 2 and so on, without a gap.",
                )
            self.check_assignments(assignments.values())
            return len(assignments)
        self._check_replication(replication_factor)
        if requested == 0 or requested < DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            )
        return self._config.broker_config.num_partitions if requested == DEFAULT else requested

    def _check_replication(self, factor: int) -> None:
        """Up to the number of brokers it is taken; copies are the affair of what is below us."""
        most = max(1, self.living_nodes())
        if factor == DEFAULT or 1 <= factor <= most:
            return
        brokers = "is 1 broker" if most == 1 else f"are {most} brokers"
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor {factor} is not possible: there {brokers}.",
        )

    def check_assignments(self, assignments: Iterable[Sequence[int]]) -> None:
        """Every partition must be on this broker, once. Raises KafkaError."""
        for replicas in assignments:
            if list(replicas) != [self._node_id]:
                raise KafkaError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"The manual assignment {list(replicas)} must be [{self._node_id}]: "
                    "this broker stands alone.",
                )

    def check_partition_limit(self, more: int) -> None:
        """`horolog.max.partitions` bounds the partitions of all topics. Raises KafkaError."""
        limit = self._config.broker_config.horolog_max_partitions
        if self._topics.image.partition_count + more > limit:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"{more} more partitions would be above horolog.max.partitions, which is {limit}.",
            )

    def check_overrides(self, topic: str, overrides: Mapping[str, str | None]) -> None:
        """Unknown or impossible settings are refused with INVALID_CONFIG (40)."""
        try:
            self._config.check_new_topic(topic, overrides)
        except ConfigError as error:
            raise config_refusal(error) from error

    async def auto_create(
        self, names: Sequence[str], allow: Callable[[int], None]
    ) -> dict[str, int]:
        """Makes the topics that a Metadata request names; the error codes of those refused.

        Of very many only the first are made: the client asks again for the others, as for any topic
        that is not there yet.
        """
        refused: dict[str, int] = {}
        count = self._config.broker_config.num_partitions
        await self._topics.authority.catch_up()
        async with self._topics.changing:
            plan = self.plan(allow)
            for name in names[:MAX_AUTO_CREATED]:
                if name in self._topics.image.topics:  # another client was faster
                    continue
                try:
                    plan.add(name, count, {})
                except KafkaError as error:
                    refused[name] = _auto_refusal(error)
            try:
                await self._topics.create(plan.topics)
            except StorageError:
                refused.update((topic.name, ErrorCode.KAFKA_STORAGE_ERROR) for topic in plan.topics)
        return refused


def _auto_refusal(error: KafkaError) -> int:
    """A name that is taken by its like is as one that is not there yet: clients ask again.

    So is one for which its client has to wait.
    """
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error.code in ASKED_AGAIN else error.code


def config_refusal(error: ConfigError) -> KafkaError:
    """The wire's code for a refused setting."""
    malformed = isinstance(error, ConfigRequestError)
    code = ErrorCode.INVALID_REQUEST if malformed else ErrorCode.INVALID_CONFIG
    return KafkaError(code, error.message)
