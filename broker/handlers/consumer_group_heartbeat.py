"""ConsumerGroupHeartbeat: a member of a group that the broker assigns joins, lives or leaves."""

from functools import partial
from typing import NamedTuple

from broker.groups.classic.group import Group, GroupState
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.groups import HeartbeatOutcome
from broker.groups.consumer.heartbeat import ConsumerHeartbeat, check, check_expression
from broker.groups.consumer.member import Assigned
from broker.groups.coordinator import GroupCoordinator
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from protocol.errors import ErrorCode, KafkaError
from storage.env import Rng

CLIENT_IDS_SINCE_VERSION = 1

Answer = ConsumerGroupHeartbeatResponse | Deferred[ConsumerGroupHeartbeatResponse]


class Services(NamedTuple):
    """The services that the answer is made with."""

    config: ConfigStore
    groups: GroupCoordinator
    probes: BrokerProbes
    rng: Rng


Context = RequestContext[Services]


def handle(request: ConsumerGroupHeartbeatRequest, context: Context) -> Answer:
    """The member's epoch, and its assignment when that changed; answered when it is durable."""
    config = context.services.config
    beat = _beat(request, context)
    try:
        _check_rights(beat, context)
        check(
            beat,
            config.broker_config.group_consumer_assignors.split(","),
            ids_by_clients=context.api_version >= CLIENT_IDS_SINCE_VERSION,
        )
        heard, written = _heard(beat, context)
    except KafkaError as error:
        return _refusal(error, context)
    interval_ms = config.group_config(beat.group_id).consumer_heartbeat_interval_ms
    response = ConsumerGroupHeartbeatResponse(
        member_id=heard.member_id,
        member_epoch=heard.epoch,
        heartbeat_interval_ms=0 if beat.leaves else interval_ms,
        assignment=None if heard.assigned is None else _assignment(heard.assigned),
    )
    if written is None:
        return response
    return after(written, lambda _: response, lambda error: _refusal(error, context))


def _heard(beat: ConsumerHeartbeat, context: Context) -> HeartbeatOutcome:
    groups = context.services.groups
    if not beat.joins:
        group, consumer = groups.require_consumer(beat.group_id)
        _check_serves(group)
        if beat.leaves:
            return groups.consumers.leave(group, consumer, beat)
        _check_words(group, beat, context)
        return groups.consumers.heartbeat(group, consumer, beat)
    group = groups.find_or_make(beat.group_id)
    _check_serves(group)
    group.check_is_of_consumers()
    try:
        _check_room(group, beat, context)
        check_expression(beat, _consumer(group))
        if not beat.member_id:
            beat = beat._replace(member_id=str(context.services.rng.uuid()))
        return groups.consumers.heartbeat(group, groups.migration.consumer_of(group), beat)
    except KafkaError:
        groups.drop_unused(group)
        raise


def _check_rights(beat: ConsumerHeartbeat, context: Context) -> None:
    context.require(AclOperation.READ, ResourceType.GROUP, beat.group_id)
    for name in beat.names or ():
        context.require(AclOperation.DESCRIBE, ResourceType.TOPIC, name)


def _consumer(group: Group) -> ConsumerGroup | None:
    return group.modern if isinstance(group.modern, ConsumerGroup) else None


def _check_serves(group: Group) -> None:
    if group.state is GroupState.DEAD:  # the broker stops
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _check_room(group: Group, beat: ConsumerHeartbeat, context: Context) -> None:
    limit = context.services.config.broker_config.group_consumer_max_size
    consumer = _consumer(group)
    is_known = consumer is not None and beat.member_id in consumer.members
    if not is_known and group.member_count >= limit:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )
    _check_words(group, beat, context)


def _check_words(group: Group, beat: ConsumerHeartbeat, context: Context) -> None:
    """Reserves room in memory, and in a record, for the member's new subscription."""
    if beat.names is None and beat.regex is None:
        return
    consumer = _consumer(group)
    known = None if consumer is None else consumer.members.get(beat.member_id)
    growth = beat.size_bytes - (0 if known is None else known.size_bytes)
    context.services.groups.room.check_subscription(growth, beat.stored_bytes)


def _beat(request: ConsumerGroupHeartbeatRequest, context: Context) -> ConsumerHeartbeat:
    owned = request.topic_partitions
    return ConsumerHeartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.server_assignor,
        None if owned is None else {each.topic_id: frozenset(each.partitions) for each in owned},
        context.client_id,
        f"/{context.client_host}",
        None if context.peer.rights is None else partial(_shows, context),
    )


def _shows(context: Context, topic: str) -> bool:
    return context.sees(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)


def _assignment(assigned: Assigned) -> ConsumerGroupHeartbeatAssignment:
    return ConsumerGroupHeartbeatAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic, partitions=sorted(indexes))
            for topic, indexes in assigned.items()
        ]
    )


def _refusal(error: KafkaError, context: Context) -> ConsumerGroupHeartbeatResponse:
    context.count_error(error.code)
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
