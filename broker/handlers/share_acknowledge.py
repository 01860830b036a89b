"""ShareAcknowledge: members of share groups say what became of records (KIP-932)."""

from functools import partial
from typing import NamedTuple

from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after, both
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.server.endpoints import AdvertisedEndpoints
from broker.share.acknowledging import AcknowledgeResult
from broker.share.leader_hints import LeaderHints
from broker.share.requests import by_topic, may_read, named
from broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession
from broker.share.share_reads import ShareReads
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.apis.share_acknowledge import (
    ShareAcknowledgePartitionResponse,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from protocol.errors import ErrorCode, KafkaError

Answer = ShareAcknowledgeResponse | Deferred[ShareAcknowledgeResponse]


class Services(NamedTuple):
    """The services that the answer is made with."""

    share_reads: ShareReads
    topics: TopicCatalog
    endpoints: AdvertisedEndpoints
    config: ConfigStore
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(request: ShareAcknowledgeRequest, context: Context) -> Answer:
    """A code for each partition, when what was said is durable."""
    reads, epoch = context.services.share_reads, request.share_session_epoch
    try:
        group, member = named(request, context)
        session = _session(reads, group, member, epoch)
    except KafkaError as error:
        return _refusal(context, error)
    acknowledged = reads.acknowledging.acknowledge(
        session, request.topics, may_read(context), is_renewal=request.is_renew_ack
    )
    respond = partial(_respond, context, group)
    if epoch != FINAL_EPOCH:
        return after(acknowledged, respond, partial(_refusal, context))
    released = reads.end(session)
    return both(acknowledged, released, lambda results, _: respond(results))


def _session(reads: ShareReads, group: str, member: str, epoch: int) -> ShareSession:
    if epoch == FINAL_EPOCH:
        return reads.sessions.find(group, member)
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    return reads.sessions.resume(group, member, epoch)


def _respond(
    context: Context, group: str, results: list[AcknowledgeResult]
) -> ShareAcknowledgeResponse:
    services = context.services
    config, image = services.config.group_config(group), services.topics.image
    hints = LeaderHints(image, services.endpoints, context.peer)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=config.share_record_lock_duration_ms,
        responses=by_topic(
            ((each.place, _partition(context, each, hints)) for each in results),
            lambda topic, found: ShareAcknowledgeTopicResponse(topic_id=topic, partitions=found),
        ),
        node_endpoints=hints.nodes(),
    )


def _partition(
    context: Context, result: AcknowledgeResult, hints: LeaderHints
) -> ShareAcknowledgePartitionResponse:
    code, message = 0, None
    if result.error is not None:
        code, message = result.error.code, result.error.message or None
        context.count_error(code)
    return ShareAcknowledgePartitionResponse(
        partition_index=result.place[1],
        error_code=code,
        error_message=message,
        current_leader=hints.of(result.place, result.error),
    )


def _refusal(context: Context, error: KafkaError) -> ShareAcknowledgeResponse:
    context.count_error(error.code)
    return ShareAcknowledgeResponse(
        error_code=error.code,
        error_message=error.message or None,
        responses=[],
        node_endpoints=[],
    )
