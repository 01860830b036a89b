"""ShareGroupHeartbeat: a member of a share group joins, lives or leaves (KIP-932)."""

from functools import partial
from typing import NamedTuple

from broker.groups.classic.group import Group, GroupState
from broker.groups.coordinator import GroupCoordinator
from broker.groups.share.group import ShareGroup
from broker.groups.share.groups import ShareOutcome
from broker.groups.share.heartbeat import ShareHeard, ShareHeartbeat, check, check_member_id
from broker.groups.subscriptions import Target
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.share_group_heartbeat import (
    ShareGroupHeartbeatAssignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatTopicPartitions,
)
from protocol.errors import ErrorCode, KafkaError

Answer = ShareGroupHeartbeatResponse | Deferred[ShareGroupHeartbeatResponse]


class Services(NamedTuple):
    """The services that the answer is made with."""

    config: ConfigStore
    groups: GroupCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(request: ShareGroupHeartbeatRequest, context: Context) -> Answer:
    """The member's epoch, and its assignment when that changed; answered when it is durable."""
    beat = _beat(request, context)
    try:
        _check_rights(beat, context)
        check(beat)
        outcome = _heard(beat, context)
    except KafkaError as error:
        return _refusal(context, error)
    if isinstance(outcome, Deferred):
        return after(outcome, partial(_respond, context, beat.group_id), partial(_refusal, context))
    return _respond(context, beat.group_id, outcome)


def _check_rights(beat: ShareHeartbeat, context: Context) -> None:
    """Kafka judges the member's id in between."""
    context.require(AclOperation.READ, ResourceType.GROUP, beat.group_id)
    check_member_id(beat.member_id)
    for name in beat.names or ():
        context.require(AclOperation.DESCRIBE, ResourceType.TOPIC, name)


def _heard(beat: ShareHeartbeat, context: Context) -> ShareOutcome:
    groups = context.services.groups
    groups.check_loaded(beat.group_id)
    if not beat.joins:
        if beat.group_id not in groups.groups and not beat.leaves:
            text = f"Share group {beat.group_id} not found."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        group, share = groups.require_share(beat.group_id)
        _check_serves(group)
        if beat.leaves:
            return groups.shares.leave(share, beat)
        groups.shares.check_room(share, beat.member_id)
        _check_words(share, beat, context)
        return groups.shares.heartbeat(share, beat)
    if beat.group_id in groups.groups:
        groups.require_share(beat.group_id)
    group = groups.find_or_make(beat.group_id)
    try:
        return _joined(group, beat, context)
    except KafkaError:
        groups.drop_unused(group)
        raise


def _joined(group: Group, beat: ShareHeartbeat, context: Context) -> ShareOutcome:
    groups = context.services.groups
    _check_serves(group)
    share = group.modern if isinstance(group.modern, ShareGroup) else None
    groups.shares.check_room(share, beat.member_id)
    _check_words(share, beat, context)
    return groups.shares.heartbeat(groups.shares.share_of(group), beat)


def _check_serves(group: Group) -> None:
    if group.state is GroupState.DEAD:  # the broker stops
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _check_words(share: ShareGroup | None, beat: ShareHeartbeat, context: Context) -> None:
    """Reserves room in memory, and in a record, for the member's new subscription."""
    if beat.names is None:
        return
    known = None if share is None else share.members.get(beat.member_id)
    growth = beat.size_bytes - (0 if known is None else known.size_bytes)
    context.services.groups.room.check_subscription(growth, beat.stored_bytes)


def _beat(request: ShareGroupHeartbeatRequest, context: Context) -> ShareHeartbeat:
    return ShareHeartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.rack_id,
        request.subscribed_topic_names,
        context.client_id,
        f"/{context.client_host}",
    )


def _respond(context: Context, group_id: str, heard: ShareHeard) -> ShareGroupHeartbeatResponse:
    interval_ms = context.services.config.group_config(group_id).share_heartbeat_interval_ms
    return ShareGroupHeartbeatResponse(
        member_id=heard.member_id,
        member_epoch=heard.epoch,
        heartbeat_interval_ms=0 if heard.is_over else interval_ms,
        assignment=None if heard.assigned is None else _assignment(heard.assigned),
    )


def _assignment(assigned: Target) -> ShareGroupHeartbeatAssignment:
    return ShareGroupHeartbeatAssignment(
        topic_partitions=[
            ShareGroupHeartbeatTopicPartitions(topic_id=topic, partitions=sorted(indexes))
            for topic, indexes in assigned.items()
        ]
    )


def _refusal(context: Context, error: KafkaError) -> ShareGroupHeartbeatResponse:
    context.count_error(error.code)
    return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
