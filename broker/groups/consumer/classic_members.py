"""Members that speak the classic protocol in a consumer group, while it is migrated (KIP-848).

They join, sync, beat and leave as ever; the group assigns for them. A join takes the member a step
towards its target, a sync hands out what it has by then. Rules: Kafka's `GroupMetadataManager`,
its `classicGroup...ToConsumerGroup` methods.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from broker.groups.classic.group import Group
from broker.groups.classic.members import Joining, JoinResult, MemberClaim, Protocol, SyncResult
from broker.groups.classic.subscription import CONSUMER
from broker.groups.consumer.embedded import (
    Subscription,
    assignment_bytes,
    read_subscription,
    version_of,
)
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.groups import ConsumerGroups, named_static
from broker.groups.consumer.member import Assigned, ConsumerMember, MemberState
from broker.groups.consumer.reconciliation import Owned
from broker.groups.records.consumer import ClassicMember, ClassicProtocol
from broker.groups.surroundings import Surroundings
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from broker.topics.metadata_image import MetadataImage
from protocol.errors import DecodeError, ErrorCode, KafkaError

NONE = ErrorCode.NONE

Joined = JoinResult | Deferred[JoinResult]


class ClassicMembers:
    """Requests of classic clients in a consumer group. Used from the event loop only."""

    def __init__(
        self, groups: ConsumerGroups, around: Surroundings, new_suffix: Callable[[], str]
    ) -> None:
        """`new_suffix` makes member ids, which nobody can guess."""
        self._groups = groups
        self._around = around
        self._new_id = new_suffix

    def join(self, group: Group, consumer: ConsumerGroup, joining: Joining) -> Joined:
        """A client wants to be a member, or to stay one. Raises KafkaError."""
        member_id = joining.member_id or self._new_id()
        limit = self._around.settings().group_consumer_max_size
        if len(consumer.members) >= limit and member_id not in consumer.members:
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        subscription = _subscription_of(consumer, joining)
        if not joining.member_id and joining.needs_known_id and joining.instance_id is None:
            return JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        member = self._member_of(consumer, joining, member_id)
        updated = _updated(member, joining, subscription)
        changed = self._groups.subscribe(consumer, member, updated)
        owned = _owned(subscription, self._around.image())
        settled = self._groups.settle(consumer, updated, owned, changed=changed)
        self._groups.alive(group, consumer, settled)
        self._groups.expect(group, consumer, settled)
        result = JoinResult(
            NONE, settled.member_id, settled.epoch, CONSUMER, joining.protocols[0].name
        )
        if joining.instance_id is not None and self._groups.on_fence(group, consumer):
            return result  # it took the place of the last member of the new protocol
        written = self._groups.rows.store(consumer)
        if written is None:
            return result
        return after(
            written, lambda _: result, lambda error: JoinResult(error.code, settled.member_id)
        )

    def _member_of(
        self, consumer: ConsumerGroup, joining: Joining, member_id: str
    ) -> ConsumerMember:
        if joining.instance_id is None:
            return consumer.members.get(member_id) or ConsumerMember(member_id)
        static = consumer.static_member(joining.instance_id)
        if joining.member_id:
            return named_static(static, member_id, joining.instance_id)
        return self._groups.static_joins(consumer, static, member_id, is_classic=True)

    def sync(
        self,
        group: Group,
        consumer: ConsumerGroup,
        claim: MemberClaim,
        protocol: tuple[str | None, str | None],
    ) -> SyncResult:
        """A member asks for its part. Raises KafkaError."""
        member, classic = _claimed(consumer, claim)
        name = classic.supported_protocols[0].name
        if protocol[0] not in {None, CONSUMER} or protocol[1] not in {None, name}:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if consumer.epoch > member.epoch and member.state is not MemberState.UNREVOKED:
            self._expect_join(group, consumer, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        consumer.timers[member.member_id].rebalance.cancel()
        self._groups.alive(group, consumer, member)
        version = version_of(classic.supported_protocols[0].metadata)
        parts = assignment_bytes(named(member.assigned, self._around.image()), version)
        return SyncResult(NONE, parts, CONSUMER, name)

    def heartbeat(self, group: Group, consumer: ConsumerGroup, claim: MemberClaim) -> None:
        """A member lives. REBALANCE_IN_PROGRESS (27) sends it to join."""
        member, _ = _claimed(consumer, claim)
        self._groups.alive(group, consumer, member)
        can_go_on = member.state is MemberState.UNRELEASED and not consumer.waits_for_others(member)
        if member.epoch < consumer.epoch or member.state is MemberState.UNREVOKED or can_go_on:
            self._expect_join(group, consumer, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def leave(
        self, group: Group, consumer: ConsumerGroup, member_id: str, instance_id: str | None
    ) -> None:
        """A member goes, whichever protocol it speaks: an administrator may remove it. A static one
        may be removed by its instance id alone.
        """
        if instance_id is not None:
            static = consumer.static_member(instance_id)
            wanted = member_id or (static.member_id if static is not None else "")
            member = named_static(static, wanted, instance_id)
        else:
            member = consumer.member(member_id)
        self._groups.fence(group, consumer, [member])
        if group.modern is consumer:
            self._groups.rows.store_later(consumer)

    def _expect_join(self, group: Group, consumer: ConsumerGroup, member: ConsumerMember) -> None:
        if consumer.timers[member.member_id].rebalance.at is None:
            self._groups.expect(group, consumer, member)


def _subscription_of(consumer: ConsumerGroup, joining: Joining) -> Subscription:
    """The subscription in a join; INCONSISTENT_GROUP_PROTOCOL (23) for nonsense."""
    classic = [each.classic for each in consumer.members.values() if each.classic is not None]
    known = Counter(each.name for one in classic for each in one.supported_protocols)
    fits = any(known[each.name] == len(classic) for each in joining.protocols)
    if joining.protocol_type != CONSUMER or not fits or joining.names_one_twice:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        return read_subscription(joining.protocols[0].metadata)
    except DecodeError as error:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from error


def _updated(
    member: ConsumerMember, joining: Joining, subscription: Subscription
) -> ConsumerMember:
    return replace(
        member,
        instance_id=joining.instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        names=frozenset(subscription.topics),
        regex="",
        client_id=joining.client_id,
        client_host=joining.client_host,
        classic=classic_member(joining.session_timeout_ms, joining.protocols),
    )


def classic_member(session_timeout_ms: int, protocols: Iterable[Protocol]) -> ClassicMember:
    """The stored facts of a member that speaks the classic protocol."""
    return ClassicMember(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=each.name, metadata=each.metadata) for each in protocols
        ],
    )


def _claimed(consumer: ConsumerGroup, claim: MemberClaim) -> tuple[ConsumerMember, ClassicMember]:
    """The member: UNKNOWN_MEMBER_ID (25), FENCED_INSTANCE_ID (82), ILLEGAL_GENERATION (22)."""
    if claim.instance_id is None:
        member = consumer.member(claim.member_id)
    else:
        static = consumer.static_member(claim.instance_id)
        member = named_static(static, claim.member_id, claim.instance_id)
    classic = _classic_of(member)
    if claim.generation != member.epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member, classic


def _classic_of(member: ConsumerMember) -> ClassicMember:
    if member.classic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {member.member_id} does not use the classic protocol.",
        )
    return member.classic


def _owned(subscription: Subscription, image: MetadataImage) -> Owned:
    """Partitions that the member has by its own account; none in the first version."""
    return {
        image.topics[each.topic].topic_id: frozenset(each.partitions)
        for each in subscription.owned
        if each.topic in image.topics
    }


def named(assigned: Assigned, image: MetadataImage) -> list[tuple[str, list[int]]]:
    """Partitions by the names of their topics; what does not exist any more is left out."""
    return [
        (image.by_id[topic].name, sorted(indexes))
        for topic, indexes in assigned.items()
        if topic in image.by_id
    ]


def ids(partitions: Mapping[str, list[int]], image: MetadataImage) -> dict[UUID, list[int]]:
    """Partitions by the ids of their topics; what does not exist is left out."""
    return {
        image.topics[name].topic_id: indexes
        for name, indexes in partitions.items()
        if name in image.topics
    }
