"""A member of a share group: its own statements, and the partitions that it reads (KIP-932).

Values, never changed: a new one takes the place of the old. A share group has no partition that
only one member may read, so a member is given its target in one step.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from broker.groups.records.consumer import TargetPartitions
from broker.groups.records.share import ShareCurrentValue, ShareMemberValue
from broker.groups.subscriptions import OBJECT_BYTES, Target, words_bytes

STABLE = 0  # the one state of a member in Kafka's records


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Target = field(default_factory=dict)

    def moved(self, epoch: int, assigned: Target) -> "ShareMember":
        """The member with its target; its last epoch is remembered, because answers get lost."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch, assigned=assigned)

    def says(self) -> tuple[object, ...]:
        """Its own statements, for comparison."""
        return self.rack_id, self.client_id, self.client_host, self.names

    def has(self) -> tuple[object, ...]:
        """Its current assignment, for comparison."""
        return self.epoch, self.previous_epoch, self.assigned

    @property
    def size_bytes(self) -> int:
        """About what it takes."""
        held = sum(map(len, self.assigned.values()))
        words = words_bytes(self.names, self.rack_id or "", self.client_id)
        return words + OBJECT_BYTES * (len(self.assigned) + held)

    def said_value(self) -> ShareMemberValue:
        """Its own statements as stored."""
        return ShareMemberValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.names),
        )

    def current_value(self) -> ShareCurrentValue:
        """Its current assignment as stored."""
        return ShareCurrentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=STABLE,
            assigned=stored_target(self.assigned),
        )


def with_said(member: ShareMember, value: ShareMemberValue) -> ShareMember:
    """The member with what is remembered of what it says."""
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        names=frozenset(value.subscribed_topic_names),
    )


def with_current(member: ShareMember, value: ShareCurrentValue) -> ShareMember:
    """The member with what is remembered of its assignment."""
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        assigned=read_target(value.assigned),
    )


def stored_target(target: Target) -> list[TargetPartitions]:
    """Partitions as stored."""
    return [
        TargetPartitions(topic_id=topic, partitions=sorted(indexes))
        for topic, indexes in target.items()
    ]


def read_target(stored: Iterable[TargetPartitions]) -> Target:
    """Partitions as they are remembered."""
    return {each.topic_id: frozenset(each.partitions) for each in stored}
