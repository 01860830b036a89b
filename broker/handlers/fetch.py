"""Fetch: sessions, the long poll, and whole batches as stored on the disk.

A client that says it is a replica is refused: there are none (operations C1). Records leave as
slices of files; nothing is read here.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from broker.fetching.damage import DamageMet, Unreadable
from broker.fetching.down_converted import (
    FORMAT_2_SINCE_VERSION,
    WHOLE_FIRST_SINCE_VERSION,
    OldFetch,
    known_to_old_clients,
)
from broker.fetching.plan import Answer, FetchPlan, FetchResult, refusal
from broker.fetching.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    FetchSessions,
    FollowedPartition,
    PartitionKey,
)
from broker.partitions.fetch_waiters import FetchWaiters, Waiter
from broker.quotas.service import Quotas
from broker.runtime.deferred import Deferred
from broker.runtime.memory_account import MemoryAccount
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.server.endpoints import AdvertisedEndpoints
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    NodeEndpoint,
    PartitionData,
)
from protocol.errors import ErrorCode, KafkaError
from storage.env import Clock
from storage.files.file_slice import Unverified

CONSUMER = -1
READ_COMMITTED = 1
STORAGE_ERROR_SINCE_VERSION = 6
SESSIONS_SINCE_VERSION = 7
TOPIC_IDS_SINCE_VERSION = 13
REPLICA_STATE_SINCE_VERSION = 15


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    config: ConfigStore
    probes: BrokerProbes
    clock: Clock
    quotas: Quotas
    waiters: FetchWaiters
    fetch_sessions: FetchSessions
    damage: DamageMet
    memory: MemoryAccount
    endpoints: AdvertisedEndpoints


Context = RequestContext[Services]


def handle(request: FetchRequest, context: Context) -> FetchResponse | Deferred[FetchResponse]:
    """Answers at once when there is enough to tell, else when there is or `max_wait_ms` is over."""
    if context.peer.rights is not None:
        context.asks(AclOperation.READ, ResourceType.TOPIC)
    if _replica_id(request, context) != CONSUMER:
        return _refuse_replica(request, context)
    try:
        fetch = _Fetch(request, context)
    except KafkaError as error:
        context.count_error(error.code)
        return FetchResponse(error_code=error.code, session_id=NO_SESSION)
    if context.api_version < FORMAT_2_SINCE_VERSION:
        deadline = context.services.clock.monotonic() + request.max_wait_ms / 1000
        return OldFetch(fetch.plan, deadline, context).convert(fetch.begin())
    return fetch.begin()


class _Fetch:
    """One request on its way: what it asks, and the session it belongs to."""

    __slots__ = (
        "context",
        "denied",
        "plan",
        "request",
        "session",
        "starts_session",
        "wait_ms",
        "waits_since",
        "wanted",
    )

    def __init__(self, request: FetchRequest, context: Context) -> None:
        """Finds or ends the session; raises the KafkaError that answers the whole request."""
        self.request = request
        self.context = context
        version = context.api_version
        by_id = version >= TOPIC_IDS_SINCE_VERSION
        self.session: FetchSession | None = None
        self.starts_session = False
        wanted = _wanted(request.topics)
        if request.session_epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            context.services.fetch_sessions.close(request.session_id)
            self.starts_session = (
                request.session_epoch == INITIAL_EPOCH and version >= SESSIONS_SINCE_VERSION
            )
        else:
            wanted = self._resume(wanted, by_id=by_id)
        self.wanted = wanted
        self.denied: list[FollowedPartition] = []
        if context.peer.rights is not None:
            wanted, self.denied = _allowed(wanted, context)
        max_bytes = min(request.max_bytes, context.services.config.broker_config.fetch_max_bytes)
        enforced = context.services.quotas.enforced
        if enforced is not None:
            max_bytes = enforced.fetch_max_bytes(context, max_bytes)
        self.plan = FetchPlan(
            wanted,
            by_id=by_id,
            committed=request.isolation_level == READ_COMMITTED,
            min_bytes=min(request.min_bytes, max_bytes),  # as Kafka: more never comes
            max_bytes=max_bytes,
            news_only=self.session is not None,
            each_whole=version < WHOLE_FIRST_SINCE_VERSION,
        )
        self.wait_ms = request.max_wait_ms
        self.waits_since = 0.0

    def begin(self) -> FetchResponse | Deferred[FetchResponse]:
        """The first reading; the answer if it is enough."""
        result = self.plan.read(self.context.services.topics.image)
        if self.denied:
            self.wait_ms = 0
        if not result.unverified and (self.wait_ms <= 0 or self.plan.is_enough(result)):
            return self._respond(result)
        answer: Deferred[FetchResponse] = Deferred()
        self._go_on(answer, result)
        return answer

    def _go_on(self, answer: Deferred[FetchResponse], result: FetchResult) -> None:
        """Not yet: some bytes have to be checked first, or there is not enough."""
        if result.unverified:
            self.context.services.damage.settle(result.unverified, partial(self._settled, answer))
        elif self.wait_ms <= 0 or answer.is_urgent or self.plan.is_enough(result):
            answer.resolve(self._respond(result))
        else:
            self._wait(answer, result)

    def _settled(
        self,
        answer: Deferred[FetchResponse],
        unreadable: Collection[Unreadable],
        late: Collection[Unverified],
    ) -> None:
        if answer.abandoned:
            return
        if late:
            self.wait_ms = 0
        image = self.context.services.topics.image
        result = self.plan.read(image, unreadable, late)
        if result.unverified:
            # Where all that was brought has no room here together, one would make the other go.
            here = self.plan.read(image, unreadable, [*late, *result.unverified])
            if here.size_bytes:
                self.wait_ms, result = 0, here
        self._go_on(answer, result)

    def _resume(self, changed: list[FollowedPartition], *, by_id: bool) -> list[FollowedPartition]:
        sessions = self.context.services.fetch_sessions
        session = sessions.resume(self.request.session_id, self.request.session_epoch, by_id=by_id)
        sessions.update(session, changed, _forgotten(self.request))
        if session.partitions:
            self.session = session
        else:
            sessions.close(session.session_id)
        return list(session.partitions.values())

    def _wait(self, answer: Deferred[FetchResponse], result: FetchResult) -> None:
        waiters = self.context.services.waiters
        self.waits_since = self.context.services.probes.monotonic()
        waiter = waiters.register(
            result.watched,
            self.plan.min_bytes - result.size_bytes,
            self.wait_ms,
            lambda: self._look_again(answer, waiter),
        )
        answer.when_abandoned(lambda: waiters.cancel(waiter))
        answer.when_hurried(lambda: waiters.give_up(waiter))

    def _look_again(self, answer: Deferred[FetchResponse], waiter: Waiter) -> None:
        waiters = self.context.services.waiters
        waited = self.context.services.probes.monotonic() - self.waits_since
        self.context.waited_seconds += waited
        self.wait_ms = 0 if waiter.is_over else waiters.remaining_ms(waiter)
        if self.context.peer.rights is not None:
            self._look_at_rights()
        self._go_on(answer, self.plan.read(self.context.services.topics.image))

    def _look_at_rights(self) -> None:
        """Checks again what was allowed when the client began to wait."""
        allowed, self.denied = _allowed(self.plan.wanted, self.context)
        if self.denied:
            self.wait_ms = 0
            self.plan = replace(self.plan, wanted=allowed)

    def _respond(self, result: FetchResult) -> FetchResponse:
        """A session hears only what is new to it: the plan has left out the rest."""
        enforced = self.context.services.quotas.enforced
        if enforced is not None:
            throttle_ms = enforced.fetched(self.context, result.size_bytes)
            if throttle_ms:
                return self._nothing_yet(throttle_ms)
        for damage in result.damage:
            self.context.services.damage.met(*damage)
        for answer in result.answers:
            self._count(answer)
            if self.session is not None and answer.size_bytes:
                self.session.served(answer.wanted.key)
        if self.starts_session:
            self.session = self.context.services.fetch_sessions.create(
                self.wanted, by_id=self.plan.by_id
            )
        for answer in result.answers:
            _remember_sent(answer)
        answers = [(answer.wanted, answer.data) for answer in result.answers]
        response = FetchResponse(
            session_id=self.session.session_id if self.session is not None else NO_SESSION,
            responses=_by_topic([*answers, *self._refusals()]),
        )
        if self.context.services.endpoints.others:
            others = self.context.services.endpoints.others_of(self.context.peer)
            leaders = {data.current_leader.leader_id for _, data in answers if data.current_leader}
            response.node_endpoints = [
                NodeEndpoint(node_id=node_id, host=others[node_id].host, port=others[node_id].port)
                for node_id in sorted(leaders & others.keys())
            ]
        return response

    def _refusals(self) -> Iterator[tuple[FollowedPartition, PartitionData]]:
        """Answers for the partitions that the client may not read."""
        for each in self.denied:
            each.sent_high_watermark = each.sent_log_start_offset = -1  # news once it is allowed
            self.context.count_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            yield each, _denied(each)

    def _nothing_yet(self, throttle_ms: int) -> FetchResponse:
        """For a client over its quota, as Kafka: no records, and nothing of its session moves."""
        session_id = NO_SESSION if self.session is None else self.session.session_id
        return FetchResponse(throttle_time_ms=throttle_ms, session_id=session_id)

    def _count(self, answer: Answer) -> None:
        data = answer.data
        if data.error_code:
            self.context.count_error(data.error_code)
            if answer.partition is not None:
                self.context.services.probes.read_failed(answer.partition.topic)
            if self.context.api_version < STORAGE_ERROR_SINCE_VERSION:
                data.error_code = known_to_old_clients(data.error_code)
        elif answer.partition is not None:
            self.context.services.probes.fetched(answer.partition.topic, answer.size_bytes)


def _remember_sent(answer: Answer) -> None:
    """After an error -1 is remembered, so that the partition is news again once it is well."""
    answer.wanted.sent_high_watermark = answer.data.high_watermark
    answer.wanted.sent_log_start_offset = answer.data.log_start_offset


def _allowed(
    wanted: Sequence[FollowedPartition], context: Context
) -> tuple[list[FollowedPartition], list[FollowedPartition]]:
    """Those that the client may read, and the others; an unknown id is not hidden."""
    image = context.services.topics.image
    allowed: list[FollowedPartition] = []
    denied: list[FollowedPartition] = []
    for each in wanted:
        name = each.topic
        if not name and each.topic_id in image.by_id:
            name = image.by_id[each.topic_id].name
        is_hidden = name and not context.may(AclOperation.READ, ResourceType.TOPIC, name)
        (denied if is_hidden else allowed).append(each)
    return allowed, denied


def _denied(wanted: FollowedPartition) -> PartitionData:
    return refusal(wanted.index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _by_topic(
    answers: Iterable[tuple[FollowedPartition, PartitionData]],
) -> list[FetchableTopicResponse]:
    """Neighbours of one topic share an entry; the order of partitions is kept."""
    topics: list[FetchableTopicResponse] = []
    last = None
    for wanted, answer in answers:
        identity = (wanted.topic, wanted.topic_id)
        if identity != last:
            last = identity
            topics.append(
                FetchableTopicResponse(topic=wanted.topic, topic_id=wanted.topic_id, partitions=[])
            )
        topics[-1].partitions.append(answer)
    return topics


def _wanted(topics: Iterable[FetchTopic]) -> list[FollowedPartition]:
    """Each partition once, as it is named last (as Kafka's brokers read it)."""
    named = _named(topics)
    if len(named) < 2:
        return named
    once = {(each.topic, each.topic_id, each.index): each for each in named}
    return named if len(once) == len(named) else list(once.values())


def _named(topics: Iterable[FetchTopic]) -> list[FollowedPartition]:
    return [
        FollowedPartition(
            topic=topic.topic,
            topic_id=topic.topic_id,
            index=each.partition,
            fetch_offset=each.fetch_offset,
            max_bytes=each.partition_max_bytes,
            leader_epoch=each.current_leader_epoch,
            last_fetched_epoch=each.last_fetched_epoch,
        )
        for topic in topics
        for each in topic.partitions
    ]


def _forgotten(request: FetchRequest) -> list[PartitionKey]:
    return [
        (topic.topic, topic.topic_id, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]


def _replica_id(request: FetchRequest, context: Context) -> int:
    if context.api_version >= REPLICA_STATE_SINCE_VERSION:
        return CONSUMER if request.replica_state is None else request.replica_state.replica_id
    return request.replica_id


def _refuse_replica(request: FetchRequest, context: Context) -> FetchResponse:
    context.count_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answers = [(wanted, _denied(wanted)) for wanted in _wanted(request.topics)]
    return FetchResponse(responses=_by_topic(answers))
