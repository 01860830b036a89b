"""A member of a streams group: what it says of itself, what it runs, how far it is (KIP-1071).

Values, never changed: a new one takes the place of the old. Times in ms.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from broker.groups.records.streams import (
    StoredEndpoint,
    StoredSetting,
    StreamsCurrentValue,
    StreamsMemberValue,
)
from broker.groups.streams.tasks import (
    NOTHING_HELD,
    HeldTasks,
    read_held,
    stored_dated,
    stored_simple,
)
from broker.groups.subscriptions import OBJECT_BYTES, words_bytes

Endpoint = tuple[str, int]
"""Host and port."""


class StreamsMemberState(IntEnum):
    """States of a member on its way to its target; the numbers are those of Kafka's records."""

    STABLE = 1
    UNREVOKED = 2
    """It has yet to give tasks back."""
    UNRELEASED = 3
    """It waits for tasks that another member has yet to give back."""
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """One member: a thread of the application."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    epoch: int = 0
    previous_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    held: HeldTasks = NOTHING_HELD
    revoking: HeldTasks = NOTHING_HELD
    """Tasks that it has yet to give back."""

    def moved(
        self, epoch: int, state: StreamsMemberState, held: HeldTasks, revoking: HeldTasks
    ) -> "StreamsMember":
        """The member on its way; its last epoch is remembered, because answers get lost."""
        return replace(
            self,
            epoch=epoch,
            previous_epoch=self.epoch,
            state=state,
            held=held,
            revoking=revoking,
        )

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """True when it has its whole target of this epoch."""
        return self.state is StreamsMemberState.STABLE and self.epoch == target_epoch

    @property
    def size_bytes(self) -> int:
        """About what it takes."""
        words = [self.rack_id or "", self.client_host, self.process_id, *self.tags]
        words += self.tags.values()
        held = self.held.size_bytes + self.revoking.size_bytes
        return words_bytes(words, "", self.client_id) + held + OBJECT_BYTES

    def said_value(self) -> StreamsMemberValue:
        """Its own statements as stored."""
        endpoint = self.endpoint
        return StreamsMemberValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=None
            if endpoint is None
            else StoredEndpoint(host=endpoint[0], port=endpoint[1]),
            client_tags=[StoredSetting(key=key, value=self.tags[key]) for key in sorted(self.tags)],
        )

    def current_value(self) -> StreamsCurrentValue:
        """Its current assignment as stored."""
        held, revoking = self.held, self.revoking
        return StreamsCurrentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            active_tasks=stored_dated(held.active),
            standby_tasks=stored_simple(held.standby),
            warmup_tasks=stored_simple(held.warmup),
            active_tasks_pending_revocation=stored_dated(revoking.active),
            standby_tasks_pending_revocation=stored_simple(revoking.standby),
            warmup_tasks_pending_revocation=stored_simple(revoking.warmup),
        )


def with_said(member: StreamsMember, value: StreamsMemberValue) -> StreamsMember:
    """The member with what is remembered of what it says."""
    endpoint = value.user_endpoint
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        tags={each.key: each.value for each in value.client_tags},
    )


def with_current(member: StreamsMember, value: StreamsCurrentValue) -> StreamsMember:
    """The member with what is remembered of where it is."""
    known = {each.value for each in StreamsMemberState}
    state = value.state if value.state in known else StreamsMemberState.UNKNOWN
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=StreamsMemberState(state),
        held=read_held(
            value.active_tasks, value.standby_tasks, value.warmup_tasks, value.member_epoch
        ),
        revoking=read_held(
            value.active_tasks_pending_revocation,
            value.standby_tasks_pending_revocation,
            value.warmup_tasks_pending_revocation,
            value.member_epoch,
        ),
    )
