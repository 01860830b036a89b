"""A classic group becomes a consumer group, and back, while its members go on (KIP-848).

Forth: with the first member that joins by the new protocol. Back: when the last one that speaks it
is gone and others remain. `group.consumer.migration.policy` allows each.
"""

from broker.groups.classic.group import Group, GroupState
from broker.groups.classic.members import Footprint, Joining, Member, Protocol
from broker.groups.classic.rebalance import Rebalances
from broker.groups.classic.subscription import CONSUMER
from broker.groups.consumer.classic_members import classic_member, ids, named
from broker.groups.consumer.embedded import (
    assignment_bytes,
    read_assignment,
    read_subscription,
    version_of,
)
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.groups import ConsumerGroups
from broker.groups.consumer.member import ConsumerMember
from broker.groups.records.classic import group_key, group_value
from broker.groups.surroundings import Surroundings
from broker.runtime.event_log import event
from protocol.errors import DecodeError, ErrorCode, KafkaError

UPGRADES, DOWNGRADES = {"bidirectional", "upgrade"}, {"bidirectional", "downgrade"}


class Migration:
    """Turns groups into the other kind. Used from the event loop only."""

    def __init__(
        self,
        groups: ConsumerGroups,
        rebalances: Rebalances,
        around: Surroundings,
        footprint: Footprint,
    ) -> None:
        """Does nothing by itself."""
        self._groups = groups
        self._rebalances = rebalances
        self._around = around
        self._footprint = footprint

    # --- to a consumer group ---

    def consumer_of(self, group: Group) -> ConsumerGroup:
        """The group as a consumer group, made one if need be: GROUP_ID_NOT_FOUND (69) if not.

        A group without members simply begins again; its offsets stay.
        """
        if isinstance(group.modern, ConsumerGroup):
            return group.modern
        if group.modern is not None:
            text = f"Group {group.group_id} is not a consumer group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        consumer = ConsumerGroup(group.group_id, self._footprint)
        if group.state is not GroupState.EMPTY:
            self._check_upgrade(group)
            try:
                members = [self._upgraded(group, each) for each in group.members.values()]
            except DecodeError as error:
                why = f"the embedded consumer protocol is malformed: {error}"
                raise _not_upgraded(group, why) from error
            self._take_over(group, consumer, members)
        if group.generation:
            consumer.rows.insert(0, (group_key(group.group_id), None))
        self._rebalances.dissolve(group)
        group.become(consumer)
        return consumer

    def _check_upgrade(self, group: Group) -> None:
        settings = self._around.settings()
        if settings.group_consumer_migration_policy not in UPGRADES:
            raise _not_upgraded(group, "online upgrade is disabled")
        if group.protocol_type != CONSUMER:
            raise _not_upgraded(group, "the group does not use the consumer embedded protocol")
        if len(group.members) >= settings.group_consumer_max_size:
            raise _not_upgraded(group, "the group size exceeds the consumer group maximum size")

    def _upgraded(self, group: Group, member: Member) -> ConsumerMember:
        """A member after the upgrade: with its old assignment, in the group's generation."""
        metadata = member.metadata_of(group.protocol_name) or member.protocols[0].metadata
        subscription = read_subscription(metadata)
        assigned = ids(read_assignment(member.assignment), self._around.image())
        return ConsumerMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            names=frozenset(subscription.topics),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=classic_member(member.session_timeout_ms, member.protocols),
            epoch=group.generation,
            previous_epoch=group.generation,
            assigned={
                topic: dict.fromkeys(indexes, group.generation)
                for topic, indexes in assigned.items()
            },
        )

    def _take_over(
        self, group: Group, consumer: ConsumerGroup, members: list[ConsumerMember]
    ) -> None:
        places = [
            (topic, index) for each in members for topic, part in each.assigned.items()
            for index in part
        ]  # fmt: skip
        if len(places) != len(set(places)):
            raise _not_upgraded(group, "members read the same partitions")
        consumer.epoch = group.generation - 1
        for member in members:
            consumer.put(member)
        consumer.sees(self._around.image())
        consumer.begin_epoch()
        for member in members:
            consumer.set_target(
                member.member_id,
                {topic: frozenset(each) for topic, each in member.assigned.items()},
            )
        consumer.settle_targets(self._around.now_ms())
        for member in members:
            consumer.remember_current(member)
            self._groups.alive(group, consumer, member)
        event("group_upgraded", group=group.group_id, members=len(members), epoch=consumer.epoch)

    # --- to a classic group ---

    def maybe_downgrade(self, group: Group, consumer: ConsumerGroup) -> bool:
        """Members are gone: whether only classic ones are left, and the group is theirs now."""
        settings = self._around.settings()
        members = list(consumer.members.values())
        if (
            not members
            or any(each.classic is None for each in members)
            or settings.group_consumer_migration_policy not in DOWNGRADES
            or len(members) > settings.group_max_size
        ):
            return False
        rows, consumer.rows = [*consumer.rows, *consumer.tombstones()], []
        group.generation = consumer.epoch
        for each in members:
            self._downgraded(group, consumer, each)
        group.protocol_type = CONSUMER
        group.protocol_name = group.select_protocol()
        group.turn(GroupState.STABLE, self._around.now_ms())
        group.read_topics()
        consumer.end()
        group.modern = None
        rows.append((group_key(group.group_id), group_value(group.remembered())))
        self._groups.rows.write(group, rows).listen(_heard)
        event("group_downgraded", group=group.group_id, members=len(members))
        for member in group.members.values():
            self._rebalances.alive(member)
        self._rebalances.prepare(group)
        return True

    def _downgraded(self, group: Group, consumer: ConsumerGroup, member: ConsumerMember) -> None:
        classic = member.classic
        assert classic is not None
        protocols = tuple(
            Protocol(each.name, each.metadata) for each in classic.supported_protocols
        )
        joining = Joining(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            classic.session_timeout_ms,
            member.rebalance_timeout_ms,
            CONSUMER,
            protocols,
            needs_known_id=True,
            may_skip_assignment=False,
        )
        made = self._rebalances.make_member(group, member.member_id, joining)
        target = consumer.targets.get(member.member_id, {})
        given = {topic: dict.fromkeys(indexes, 0) for topic, indexes in target.items()}
        parts = named(given, self._around.image())
        made.assignment = assignment_bytes(parts, version_of(protocols[0].metadata))
        group.add(made, CONSUMER)


def _heard(_: None, __: BaseException | None) -> None:
    """Ignores the result: what is not written is owed, and goes with the next generation."""


def _not_upgraded(group: Group, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {why}.",
    )
