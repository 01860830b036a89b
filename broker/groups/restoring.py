"""Groups as they were before the start, with sessions that begin now."""

from broker.groups.classic.group import Group, GroupState
from broker.groups.classic.members import Footprint, Joining, Protocol
from broker.groups.classic.rebalance import Rebalances
from broker.groups.consumer.groups import ConsumerGroups
from broker.groups.consumer.loading import RememberedConsumers
from broker.groups.records.classic import GroupMetadataValue, MemberMetadata
from broker.groups.share.groups import ShareGroups
from broker.groups.share.loading import RememberedShares
from broker.groups.streams.groups import StreamsGroups
from broker.groups.streams.loading import RememberedStreams


def restore_classic(group: Group, value: GroupMetadataValue, rebalances: Rebalances) -> None:
    """A generation goes on; what its members said of themselves is known in its protocol alone."""
    group.generation = value.generation
    for each in value.members:
        joining = _as_it_joined(each, value)
        member = rebalances.make_member(group, each.member_id, joining)
        member.assignment = each.assignment
        group.add(member, value.protocol_type)
    group.protocol_type = value.protocol_type or None
    group.protocol_name, group.leader = value.protocol, value.leader
    group.turn(
        GroupState.STABLE if group.members else GroupState.EMPTY, value.current_state_timestamp
    )
    group.read_topics()
    for member in group.members.values():
        rebalances.alive(member)


def restore_consumers(
    group: Group, found: RememberedConsumers, consumers: ConsumerGroups, footprint: Footprint
) -> None:
    """A consumer group goes on."""
    consumer = found.made(group.group_id, footprint)
    group.become(consumer)
    for member in consumer.members.values():
        consumers.alive(group, consumer, member)


def restore_shares(
    group: Group, found: RememberedShares, shares: ShareGroups, footprint: Footprint
) -> None:
    """A share group goes on, without topics that are gone."""
    share = found.made(group.group_id, footprint)
    group.become(share)
    for member in share.members.values():
        shares.alive(share, member)
    shares.topics_deleted(share)


def restore_streams(
    group: Group, found: RememberedStreams, streams_groups: StreamsGroups, footprint: Footprint
) -> None:
    """A streams group goes on."""
    streams = found.made(group.group_id, footprint)
    group.become(streams)
    for member in streams.members.values():
        streams_groups.alive(streams, member)
        streams_groups.expect(streams, member)


def _as_it_joined(member: MemberMetadata, value: GroupMetadataValue) -> Joining:
    timeout = member.rebalance_timeout or member.session_timeout
    return Joining(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.session_timeout,
        timeout,
        value.protocol_type,
        (Protocol(value.protocol or "", member.subscription),),
        needs_known_id=True,
        may_skip_assignment=False,
    )
