"""Requests for the state of one share partition: here, or within Kafka's request to another node.

Those that `repeats` do the same when they come twice, also late: see `ShareCoordinator.shared`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from broker.runtime.deferred import Deferred
from broker.share.state.coordinator import ShareChange, ShareCoordinator
from broker.share.state.key import ShareKey
from broker.share.state.remembered import UNKNOWN, SharePartitionState
from broker.share.states import StateBatch
from protocol.apis import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)

V = TypeVar("V")


@dataclass(frozen=True)
class StateOperation(ABC, Generic[V]):
    """One request."""

    name: ClassVar[str]
    """The API's."""
    schemas: ClassVar[ModuleType]
    key: ShareKey

    @property
    def repeats(self) -> bool:
        """True when it may be sent again though it may have been carried out."""
        return True

    @abstractmethod
    def here(self, states: ShareCoordinator) -> V | Deferred[V]:
        """Asks the coordinator of this node. Raises KafkaError, or fails with it."""

    def fields(self) -> dict[str, object]:
        """Fields of the partition in the request, beside its number."""
        return {}

    @abstractmethod
    def value(self, result: Any) -> V:
        """The value of a result without an error."""


@dataclass(frozen=True)
class InitializeState(StateOperation[None]):
    """Begins a share partition."""

    name: ClassVar[str] = "InitializeShareGroupState"
    schemas: ClassVar[ModuleType] = initialize_share_group_state
    state_epoch: int
    start_offset: int

    @property
    def repeats(self) -> bool:
        """A start that a tool has set is not set again by a copy that comes late."""
        return self.start_offset == UNKNOWN

    def here(self, states: ShareCoordinator) -> Deferred[None]:
        """As the base class has it."""
        return states.initialize(self.key, self.state_epoch, self.start_offset)

    def fields(self) -> dict[str, object]:
        """As the base class has it."""
        return {"state_epoch": self.state_epoch, "start_offset": self.start_offset}

    def value(self, result: Any) -> None:
        """Nothing."""


@dataclass(frozen=True)
class ReadState(StateOperation[SharePartitionState]):
    """Reads a state for a leader of this epoch."""

    name: ClassVar[str] = "ReadShareGroupState"
    schemas: ClassVar[ModuleType] = read_share_group_state
    leader_epoch: int

    def here(self, states: ShareCoordinator) -> SharePartitionState | Deferred[SharePartitionState]:
        """As the base class has it."""
        return states.read(self.key, self.leader_epoch)

    def fields(self) -> dict[str, object]:
        """As the base class has it."""
        return {"leader_epoch": self.leader_epoch}

    def value(self, result: Any) -> SharePartitionState:
        """As the leader needs it: of snapshots and times it knows nothing."""
        batches = [
            StateBatch(
                each.first_offset, each.last_offset, each.delivery_state, each.delivery_count
            )
            for each in result.state_batches
        ]
        return SharePartitionState(
            0, result.state_epoch, self.leader_epoch, result.start_offset, UNKNOWN, batches, 0, 0
        )


@dataclass(frozen=True)
class WriteState(StateOperation[None]):
    """Changes a state."""

    name: ClassVar[str] = "WriteShareGroupState"
    schemas: ClassVar[ModuleType] = write_share_group_state
    change: ShareChange

    def here(self, states: ShareCoordinator) -> Deferred[None]:
        """As the base class has it."""
        return states.write(self.key, self.change)

    def fields(self) -> dict[str, object]:
        """As the base class has it."""
        change = self.change
        return {
            "state_epoch": change.state_epoch,
            "leader_epoch": change.leader_epoch,
            "start_offset": change.start_offset,
            "delivery_complete_count": change.finished,
            "state_batches": [
                read_share_group_state.StateBatch(
                    first_offset=each.first,
                    last_offset=each.last,
                    delivery_state=each.state,
                    delivery_count=each.deliveries,
                )
                for each in change.batches
            ],
        }

    def value(self, result: Any) -> None:
        """Nothing."""


@dataclass(frozen=True)
class DeleteState(StateOperation[None]):
    """Forgets a share partition."""

    name: ClassVar[str] = "DeleteShareGroupState"
    schemas: ClassVar[ModuleType] = delete_share_group_state

    @property
    def repeats(self) -> bool:
        """A copy that comes late would forget a partition that was begun again meanwhile."""
        return False

    def here(self, states: ShareCoordinator) -> Deferred[None]:
        """As the base class has it."""
        return states.delete(self.key)

    def value(self, result: Any) -> None:
        """Nothing."""


@dataclass(frozen=True)
class ReadSummary(StateOperation[SharePartitionState]):
    """Reads how far a share partition has come, for the group's coordinator."""

    name: ClassVar[str] = "ReadShareGroupStateSummary"
    schemas: ClassVar[ModuleType] = read_share_group_state_summary

    def here(self, states: ShareCoordinator) -> SharePartitionState:
        """As the base class has it."""
        return states.summary(self.key)

    def fields(self) -> dict[str, object]:
        """No leader asks."""
        return {"leader_epoch": UNKNOWN}

    def value(self, result: Any) -> SharePartitionState:
        """Without batches."""
        return SharePartitionState(
            0, result.state_epoch, result.leader_epoch, result.start_offset,
            result.delivery_complete_count, [], 0, 0,
        )  # fmt: skip


def request_of(operations: Sequence[StateOperation[Any]]) -> Any:
    """The request with all of these, of one kind and one group."""
    first = operations[0]
    name, schemas = first.name, first.schemas
    by_topic: dict[UUID, list[object]] = {}
    for each in operations:
        partition = getattr(schemas, f"{name}Partition")(
            partition=each.key.partition, **each.fields()
        )
        by_topic.setdefault(each.key.topic_id, []).append(partition)
    topics = [
        getattr(schemas, f"{name}Topic")(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in by_topic.items()
    ]
    return getattr(schemas, f"{name}Request")(group_id=first.key.group, topics=topics)


def results_of(group: str, response: Any) -> dict[ShareKey, Any]:
    """Results by share partition."""
    return {
        ShareKey(group, topic.topic_id, each.partition): each
        for topic in response.results
        for each in topic.partitions
    }
