"""ShareFetch: members of share groups acquire records, and acknowledge earlier ones (KIP-932)."""

from functools import partial
from typing import NamedTuple

from broker.quotas.service import Quotas
from broker.runtime.deferred import Deferred, resolved
from broker.runtime.gathering import after, both
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.server.endpoints import AdvertisedEndpoints
from broker.share.acknowledging import AcknowledgeResult
from broker.share.acquire import Ask
from broker.share.fetch_look import FetchTerms, SharedAnswer
from broker.share.leader_hints import LeaderHints
from broker.share.requests import by_topic, may_read, named
from broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, SharedPlace, ShareSession
from broker.share.share_reads import ShareReads
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.apis.share_acknowledge import LeaderIdAndEpoch
from protocol.apis.share_fetch import (
    BATCH_OPTIMIZED,
    RECORD_LIMIT,
    AcquiredRecords,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopicResponse,
    SharePartitionData,
)
from protocol.errors import ErrorCode, KafkaError

Answer = ShareFetchResponse | Deferred[ShareFetchResponse]


class Services(NamedTuple):
    """The services that the answer is made with."""

    share_reads: ShareReads
    topics: TopicCatalog
    endpoints: AdvertisedEndpoints
    config: ConfigStore
    quotas: Quotas
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(request: ShareFetchRequest, context: Context) -> Answer:
    """Records that the member holds now; at once when there are enough, else when there are or
    `max_wait_ms` is over.
    """
    try:
        group, member = named(request, context)
        _check(request)
        session = _session(request, context, group, member)
    except KafkaError as error:
        if error.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _after_the_wait(request, context, error)
        return _refusal(context, error)
    acknowledged = context.services.share_reads.acknowledging.acknowledge(
        session, request.topics, may_read(context), is_renewal=request.is_renew_ack
    )
    if request.share_session_epoch == FINAL_EPOCH:
        return _ended(context, session, acknowledged)
    if request.is_renew_ack:
        join = partial(_respond, context, group, [])
        return after(acknowledged, join, partial(_refusal, context))
    return _fetched(request, context, session, acknowledged)


def _check(request: ShareFetchRequest) -> None:
    """INVALID_REQUEST (42)."""
    epoch = request.share_session_epoch
    if epoch < FINAL_EPOCH:
        raise _invalid(f"{epoch} is no epoch of a share session.")
    if epoch == INITIAL_EPOCH and _acknowledges(request):
        raise _invalid("A request that begins a session acknowledges nothing.")
    if request.share_acquire_mode not in {BATCH_OPTIMIZED, RECORD_LIMIT}:
        raise _invalid(f"{request.share_acquire_mode} is no mode of acquisition.")
    limits = request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms
    if request.is_renew_ack and any(limits):
        raise _invalid("A request that renews locks fetches nothing: its limits have to be 0.")


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


def _acknowledges(request: ShareFetchRequest) -> bool:
    return any(
        each.acknowledgement_batches for topic in request.topics for each in topic.partitions
    )


def _session(request: ShareFetchRequest, context: Context, group: str, member: str) -> ShareSession:
    """The session, begun or gone on with; one that is about to end is as it was."""
    sessions, epoch = context.services.share_reads.sessions, request.share_session_epoch
    if epoch == FINAL_EPOCH:
        return sessions.find(group, member)
    wanted = [
        (topic.topic_id, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    ]
    if epoch == INITIAL_EPOCH:
        return sessions.begin(group, member, context.connection_id, wanted)
    session = sessions.resume(group, member, epoch)
    forgotten = [
        (topic.topic_id, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    sessions.follow(session, wanted, forgotten)
    return session


def _fetched(
    request: ShareFetchRequest,
    context: Context,
    session: ShareSession,
    acknowledged: Deferred[list[AcknowledgeResult]],
) -> Answer:
    max_bytes = min(request.max_bytes, context.services.config.broker_config.fetch_max_bytes)
    enforced = context.services.quotas.enforced
    if enforced is not None:
        max_bytes = enforced.fetch_max_bytes(context, max_bytes)
    by_record = request.share_acquire_mode == RECORD_LIMIT
    ask = Ask(request.max_records, max(request.batch_size, 1), by_record)
    terms = FetchTerms(request.max_wait_ms, min(request.min_bytes, max_bytes), max_bytes, ask)
    fetcher = context.services.share_reads.fetch(session, terms, may_read(context))

    def join(results: list[AcknowledgeResult], answers: list[SharedAnswer]) -> ShareFetchResponse:
        context.waited_seconds += fetcher.waited_seconds
        return _respond(context, session.group, answers, results)

    return both(acknowledged, fetcher.begin(), join)


def _ended(
    context: Context, session: ShareSession, acknowledged: Deferred[list[AcknowledgeResult]]
) -> Answer:
    """Releases what is not acknowledged by now; the answer waits until that is durable."""
    released = context.services.share_reads.end(session)

    respond = partial(_respond, context, session.group, [])
    return both(acknowledged, released, lambda results, _: respond(results))


def _respond(
    context: Context,
    group: str,
    answers: list[SharedAnswer],
    results: list[AcknowledgeResult],
) -> ShareFetchResponse:
    """Partitions that have something to tell."""
    services = context.services
    config, image = services.config.group_config(group), services.topics.image
    hints = LeaderHints(image, services.endpoints, context.peer)
    told: dict[SharedPlace, SharePartitionData] = {}
    for answer in answers:
        told[answer.place] = _partition(context, answer, hints)
    for result in results:
        known = told.setdefault(result.place, _empty(result.place))
        if result.error is not None:
            context.count_error(result.error.code)
            known.acknowledge_error_code = result.error.code
            known.acknowledge_error_message = result.error.message or None
            known.current_leader = hints.of(result.place, result.error)
    return ShareFetchResponse(
        throttle_time_ms=_counted(context, answers),
        acquisition_lock_timeout_ms=config.share_record_lock_duration_ms,
        responses=by_topic(
            told.items(),
            lambda topic, found: ShareFetchTopicResponse(topic_id=topic, partitions=found),
        ),
        node_endpoints=hints.nodes(),
    )


def _partition(context: Context, answer: SharedAnswer, hints: LeaderHints) -> SharePartitionData:
    made = _empty(answer.place)
    if answer.error is not None:
        context.count_error(answer.error.code)
        made.error_code = answer.error.code
        made.error_message = answer.error.message or None
        made.current_leader = hints.of(answer.place, answer.error)
        return made
    context.services.probes.fetched(answer.topic, len(answer.records))
    made.records = answer.records
    made.acquired_records = [
        AcquiredRecords(
            first_offset=each.first, last_offset=each.last, delivery_count=each.deliveries
        )
        for each in answer.acquired
    ]
    return made


def _empty(place: SharedPlace) -> SharePartitionData:
    return SharePartitionData(
        partition_index=place[1],
        current_leader=LeaderIdAndEpoch(),
        records=b"",
        acquired_records=[],
    )


def _counted(context: Context, answers: list[SharedAnswer]) -> int:
    """Milliseconds for which the client is to rest; what it got is sent: it holds it by now."""
    enforced = context.services.quotas.enforced
    if enforced is None:
        return 0
    return enforced.sent(context, sum(len(each.records) for each in answers))


def _after_the_wait(request: ShareFetchRequest, context: Context, error: KafkaError) -> Answer:
    """As Kafka: a client without a session would ask again at once."""
    waited = context.services.share_reads.after_ms(request.max_wait_ms)
    return both(resolved(None), waited, lambda *_: _refusal(context, error))


def _refusal(context: Context, error: KafkaError) -> ShareFetchResponse:
    context.count_error(error.code)
    return ShareFetchResponse(
        error_code=error.code,
        error_message=error.message or None,
        responses=[],
        node_endpoints=[],
    )
