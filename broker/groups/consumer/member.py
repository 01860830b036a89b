"""A member of a consumer group: what it says of itself, what it has, how far it is (KIP-848).

Values, never changed: a new one takes the place of the old. Times in ms.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from uuid import UUID

from broker.groups.records.consumer import (
    ClassicMember,
    CurrentPartitions,
    CurrentValue,
    MemberValue,
    Said,
)
from broker.groups.subscriptions import OBJECT_BYTES, words_bytes

Assigned = Mapping[UUID, Mapping[int, int]]
"""Partitions by topic, with the epoch in which the member was given each (KIP-1251)."""

LEFT_FOR_A_WHILE = -2  # the epoch of a static member that will be back


class MemberState(IntEnum):
    """States of a member on its way to its target; the numbers are those of Kafka's records."""

    STABLE = 0
    UNREVOKED = 1
    """It has yet to give partitions back."""
    UNRELEASED = 2
    """It waits for partitions that another member has yet to give back."""
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. `regex` is its subscription by expression; empty matches nothing."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMember | None = None
    """Set of a member that speaks the classic protocol."""
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Assigned = field(default_factory=dict)
    revoking: Assigned = field(default_factory=dict)
    """Partitions that it has yet to give back."""

    def moved(
        self, epoch: int, state: MemberState, assigned: Assigned, revoking: Assigned
    ) -> "ConsumerMember":
        """The member on its way; its last epoch is remembered, because answers get lost."""
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """True when it has its whole target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def says(self) -> tuple[object, ...]:
        """Its own statements, for comparison."""
        return (
            self.instance_id, self.rack_id, self.client_id, self.client_host, self.names,
            self.regex, self.rebalance_timeout_ms, self.assignor, self.classic,
        )  # fmt: skip

    def has(self) -> tuple[object, ...]:
        """Its current assignment, for comparison."""
        return self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking

    @property
    def size_bytes(self) -> int:
        """About what it takes."""
        said = words_bytes(self.names, self.regex, self.client_id)
        if self.classic is not None:
            said += sum(len(each.metadata) for each in self.classic.supported_protocols)
        held = sum(len(each) for part in (self.assigned, self.revoking) for each in part.values())
        return said + OBJECT_BYTES * (len(self.assigned) + held)

    def said_value(self) -> Said:
        """Its own statements as stored."""
        value = MemberValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.names),
            subscribed_topic_regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
        )
        return Said(value, self.classic)

    def current_value(self) -> CurrentValue:
        """Its current assignment as stored."""
        return CurrentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned=_partitions(self.assigned),
            pending_revocation=_partitions(self.revoking),
        )


def _partitions(assigned: Assigned) -> list[CurrentPartitions]:
    return [
        CurrentPartitions(
            topic_id=topic_id,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[index] for index in sorted(epochs)],
        )
        for topic_id, epochs in assigned.items()
    ]


def with_said(member: ConsumerMember, said: Said) -> ConsumerMember:
    """The member with what is remembered of what it says."""
    value = said.value
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        names=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=said.classic,
    )


def with_current(member: ConsumerMember, value: CurrentValue) -> ConsumerMember:
    """The member with what is remembered of where it is."""
    known = {each.value for each in MemberState}
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state if value.state in known else MemberState.UNKNOWN),
        assigned=_read(value.assigned, value.member_epoch),
        revoking=_read(value.pending_revocation, value.member_epoch),
    )


def _read(partitions: list[CurrentPartitions], epoch: int) -> Assigned:
    """A Kafka before 4.3 did not write when a partition was given: the member's epoch counts."""
    found: dict[UUID, dict[int, int]] = {}
    for each in partitions:
        epochs = each.assignment_epochs or [epoch] * len(each.partitions)
        found[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
    return found
