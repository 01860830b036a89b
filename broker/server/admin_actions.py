"""The administrative APIs and the events of their requests and answers: one table.

`watched` applies the table to the handlers, so that none of them can forget its trace.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from broker.quotas.table import Entity, Limits, entity_of
from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.runtime.request_context import RequestContext
from broker.runtime.slowly import slowly
from broker.security.audit.lines import MAX_DETAIL, MAX_NAME, MAX_WHO, AdminChange, Who
from broker.security.audit.trail import AuditTrail
from broker.server.audit_room import Tasks, once
from broker.server.route import Handler, Route
from broker.server.settings_shown import (
    OTHERS,
    Before,
    altered_text,
    settings_text,
    values_before,
)
from protocol.errors import ErrorCode, KafkaError

Changes = Iterable[AdminChange]
Described = Callable[[Any, Any], Changes]

TOPIC, BROKER = 2, 4
_KINDS: Mapping[int, str] = {TOPIC: "topic", BROKER: "broker", **OTHERS}


@dataclass(frozen=True, slots=True)
class Compared:
    """As `Described`, of a change that replaces values: `before` looks at them in time.

    It gets the request and the handler's services; `describe` request, answer, and what it found.
    """

    before: Callable[[Any, Any], Any]
    describe: Callable[[Any, Any, Any], Changes]


def _created(request: Any, response: Any) -> Changes:
    if request.validate_only:
        return
    settings = {each.name: settings_text(each.configs, TOPIC) for each in request.topics}
    for each in response.topics:
        detail = f"partitions={each.num_partitions} {settings.get(each.name, '')}".strip()
        yield change("create topic", each.name, detail, each)


def _deleted(_: Any, response: Any) -> Changes:
    for each in response.responses:
        yield change("delete topic", each.name or str(each.topic_id), f"id={each.topic_id}", each)


def _grown(request: Any, response: Any) -> Changes:
    if request.validate_only:
        return
    counts = {each.name: each.count for each in request.topics}
    for each in response.results:
        yield change("add partitions", each.name, f"partitions={counts.get(each.name)}", each)


def _emptied(_: Any, response: Any) -> Changes:
    for place, each in _partitions(response.topics):
        yield change("delete records", place, f"before={each.low_watermark}", each)


def _partitions(topics: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """The answer of each partition, with its name."""
    for topic in topics:
        for each in topic.partitions:
            yield f"{topic.name}-{each.partition_index}", each


def _altered(request: Any, response: Any, before: list[Before]) -> Changes:
    if request.validate_only:
        return
    for resource, each, values in zip(request.resources, response.responses, before, strict=True):
        kind = _KINDS.get(each.resource_type, str(each.resource_type))
        name = f"{kind} {each.resource_name}".strip()
        yield change("alter settings", name, altered_text(resource, values), each)


def _settings_before(request: Any, services: Any) -> list[Before]:
    return [values_before(each, services.config) for each in request.resources]


def _groups_deleted(_: Any, response: Any) -> Changes:
    for each in response.results:
        yield change("delete group", each.group_id, "", each)


def _offsets_deleted(request: Any, response: Any) -> Changes:
    if response.error_code:
        yield change("delete offsets", request.group_id, "", response)
    for place, each in _partitions(response.topics):
        yield change("delete offsets", f"{request.group_id} {place}", "", each)


def _share_offsets_set(request: Any, response: Any) -> Changes:
    if response.error_code:
        yield change("set offsets", request.group_id, "", response)
    starts = {
        (topic.topic_name, each.partition_index): each.start_offset
        for topic in request.topics
        for each in topic.partitions
    }
    for topic in response.responses:
        for each in topic.partitions:
            place = f"{request.group_id} {topic.topic_name}-{each.partition_index}"
            start = starts.get((topic.topic_name, each.partition_index))
            yield change("set offsets", place, f"offset={start}", each)


def _share_offsets_deleted(request: Any, response: Any) -> Changes:
    if response.error_code:
        yield change("delete offsets", request.group_id, "", response)
    for each in response.responses:
        yield change("delete offsets", f"{request.group_id} {each.topic_name}", "", each)


def _quotas(request: Any, response: Any, before: dict[Entity, Limits]) -> Changes:
    if request.validate_only:
        return
    ops = {_entity(each): each.ops for each in request.entries}
    for each in response.entries:
        entity = _entity(each)
        was = before.get(entity, {})
        detail = " ".join(
            f"{op.key}{' deleted' if op.remove else f'={op.value:g}'} "
            f"(was {f'{was[op.key]:g}' if op.key in was else 'none'})"
            for op in ops.get(entity, ())
        )
        name = " ".join(f"{kind}={of or '(default)'}" for kind, of in entity)
        yield change("alter quota", name, detail, each)


def _quotas_before(request: Any, services: Any) -> dict[Entity, Limits]:
    limits = services.quotas.table.entries
    return {entity: limits.get(entity, {}) for entity in map(_entity, request.entries)}


def _users(request: Any, response: Any) -> Changes:
    details = {each.name: f"delete mechanism={each.mechanism}" for each in request.deletions}
    for each in request.upsertions:
        details[each.name] = f"mechanism={each.mechanism} iterations={each.iterations}"
    for each in response.results:
        yield change("alter user", each.user, details.get(each.user, ""), each)


def _features(request: Any, response: Any) -> Changes:
    """The result of one is that of all (KIP-584)."""
    if request.validate_only:
        return
    for each in request.feature_updates:
        yield change("update feature", each.feature, f"level={each.max_version_level}", response)


def _transactions_ended(request: Any, response: Any) -> Changes:
    ends = {each.producer_id: each.transaction_result for each in request.markers}
    for marker in response.markers:
        end = "commit" if ends.get(marker.producer_id) else "abort"
        for place, each in _partitions(marker.topics):
            yield change("end transaction", place, f"producer_id={marker.producer_id} {end}", each)


def _acls_created(request: Any, response: Any) -> Changes:
    for asked, each in zip(request.creations, response.results, strict=True):
        detail = _acl(asked, asked.resource_pattern_type)
        yield change("create ACL", asked.resource_name, detail, each)


def _acls_deleted(request: Any, response: Any) -> Changes:
    for asked, each in zip(request.filters, response.filter_results, strict=True):
        if each.error_code:
            yield change("delete ACL", str(asked.resource_name_filter), "", each)
        for gone in each.matching_acls:
            yield change("delete ACL", gone.resource_name, _acl(gone, gone.pattern_type), gone)


def _token_made(_: Any, response: Any) -> Changes:
    detail = f"owner={response.principal_name} ends at {response.expiry_timestamp_ms}"
    yield change("create delegation token", response.token_id, detail, response)


def _token_before(request: Any, services: Any) -> str:
    """Its id and owner, since requests name it by what is its password."""
    found: str = services.tokens.name_of(bytes(request.hmac))
    return found


def _token_renewed(_: Any, response: Any, name: str) -> Changes:
    yield change("renew delegation token", name, _ends(response), response)


def _token_expired(_: Any, response: Any, name: str) -> Changes:
    yield change("expire delegation token", name, _ends(response), response)


def _ends(response: Any) -> str:
    return f"ends at {response.expiry_timestamp_ms}"


def _acl(entry: Any, pattern: int) -> str:
    """In numbers, as the request or the answer has them."""
    return (
        f"type={entry.resource_type} pattern={pattern} principal={entry.principal} "
        f"host={entry.host} operation={entry.operation} permission={entry.permission_type}"
    )


ACTIONS: Mapping[str, Described | Compared] = MappingProxyType(
    {
        "CreateTopics": _created,
        "DeleteTopics": _deleted,
        "CreatePartitions": _grown,
        "DeleteRecords": _emptied,
        "AlterConfigs": Compared(_settings_before, _altered),
        "IncrementalAlterConfigs": Compared(_settings_before, _altered),
        "DeleteGroups": _groups_deleted,
        "OffsetDelete": _offsets_deleted,
        "AlterShareGroupOffsets": _share_offsets_set,
        "DeleteShareGroupOffsets": _share_offsets_deleted,
        "AlterClientQuotas": Compared(_quotas_before, _quotas),
        "AlterUserScramCredentials": _users,
        "WriteTxnMarkers": _transactions_ended,
        "UpdateFeatures": _features,
        "CreateAcls": _acls_created,
        "CreateDelegationToken": _token_made,
        "RenewDelegationToken": Compared(_token_before, _token_renewed),
        "ExpireDelegationToken": Compared(_token_before, _token_expired),
        "DeleteAcls": _acls_deleted,
    }
)
NO_ACTIONS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        (
            "ApiVersions", "ConsumerGroupDescribe", "DescribeAcls", "DescribeClientQuotas",
            "DescribeCluster", "DescribeConfigs", "DescribeDelegationToken", "DescribeGroups",
            "DescribeLogDirs", "DescribeProducers", "DescribeQuorum", "DescribeTopicPartitions",
            "DescribeTransactions", "DescribeUserScramCredentials", "Fetch",
            "FindCoordinator", "ListConfigResources", "ListGroups", "ListOffsets",
            "ListPartitionReassignments", "ListTransactions", "OffsetFetch",
            "OffsetForLeaderEpoch", "SaslAuthenticate", "SaslHandshake", "ShareGroupDescribe",
            "DescribeShareGroupOffsets", "StreamsGroupDescribe",
        ),
        "it only asks",
    )
    | dict.fromkeys(
        (
            "Produce", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn",
            "TxnOffsetCommit", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup",
            "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge",
            "GetTelemetrySubscriptions", "PushTelemetry", "StreamsGroupHeartbeat",
        ),
        "it is what clients do all day",
    )
    | dict.fromkeys(
        (
            "InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState",
            "DeleteShareGroupState", "ReadShareGroupStateSummary",
        ),
        "it is what brokers say to the share coordinator",
    )
    | dict.fromkeys(
        ("ElectLeaders", "AlterPartitionReassignments", "AlterReplicaLogDirs"),
        "one node changes nothing",
    )
    | {
        "Metadata": "it makes topics, and tells so itself",
        "OffsetCommit": "it sets offsets for who is no member, and tells so itself",
    }
)  # fmt: skip


def who_asks(context: RequestContext[Any]) -> Who:
    """The client of a request."""
    return Who(
        context.client_id[:MAX_WHO],
        context.client_host,
        context.listener_name,
        str(context.principal)[:MAX_WHO],
    )


@dataclass(frozen=True, slots=True)
class _Watched:
    """A handler of an API that administrates: whatever comes of a request leaves its trace."""

    name: str
    handle: Handler
    action: Described | Compared
    trail: AuditTrail
    tasks: Tasks = field(default_factory=set)

    def __call__(self, request: Any, context: RequestContext[Any]) -> Any:
        """Answers as the handler does, once the traces have room.

        CloseConnection while nothing takes them.
        """
        if self.trail.is_lost:
            raise CloseConnection("audit_lost", f"{self.name}: the audit cannot be written")
        room = self.trail.room()
        if room is not None:
            return once(room, partial(self._handled, request, context), self.tasks)
        return self._handled(request, context)

    def _handled(self, request: Any, context: RequestContext[Any]) -> Any:
        describe = self._describing(request, context)
        try:
            answer = self.handle(request, context)
        except Exception as error:
            self._failed(context, error)
            raise
        if isinstance(answer, Deferred):
            return self._later(answer, describe, context)
        if isinstance(answer, Awaitable):
            return self._after(answer, describe, context)
        return self._note(describe, context, answer)

    def _describing(self, request: Any, context: RequestContext[Any]) -> "_Describe":
        """Describes the answer, with the values that were there before."""
        action = self.action
        if isinstance(action, Compared):
            return _Comparing(action, request, action.before(request, context.services))
        return partial(action, request)

    def _later(
        self, answer: Deferred[Any], describe: "_Describe", context: RequestContext[Any]
    ) -> Any:
        """Traces a later answer. No `gathering.after`: it must be traced although the client is
        gone.
        """
        answered: Deferred[Any] = Deferred()

        def settled(response: Any, error: BaseException | None) -> None:
            if error is not None:
                self._failed(context, error)
                answered.fail(error)
                return
            noted = self._note(describe, context, response)
            if isinstance(noted, Deferred):
                noted.listen(lambda value, _: answered.resolve(value))
            else:
                answered.resolve(noted)

        answer.listen(settled)
        return answered

    async def _after(
        self, answer: Awaitable[Any], describe: "_Describe", context: RequestContext[Any]
    ) -> Any:
        try:
            response = await answer
        except Exception as error:
            self._failed(context, error)
            raise
        who = who_asks(context)
        async for each in slowly(describe(response)):
            self.trail.noted(who, each, self.name)
        room = self.trail.room()
        if room is not None:
            await wait_for(room)
        return response

    def _note(self, describe: "_Describe", context: RequestContext[Any], response: Any) -> Any:
        """The answer, at once or as soon as the traces have room."""
        who = who_asks(context)
        for each in describe(response):
            self.trail.noted(who, each, self.name)
        room = self.trail.room()
        if room is None:
            return response
        waited: Deferred[Any] = Deferred()
        room.listen(lambda *_: waited.resolve(response))
        return waited

    def _failed(self, context: RequestContext[Any], error: BaseException) -> None:
        """Nobody can say what was done and what was not."""
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        reason = f"{type(error).__name__}: {error}"[:MAX_DETAIL]
        change = AdminChange(self.name, "", "", code, reason)
        self.trail.noted(who_asks(context), change, self.name)


_Describe = Callable[[Any], Changes]


@dataclass(frozen=True, slots=True)
class _Comparing:
    """A `Compared` with what was there before."""

    action: Compared
    request: Any
    found: Any

    def __call__(self, response: Any) -> Changes:
        return self.action.describe(self.request, response, self.found)


def watched(served: Mapping[int, Route], trail: AuditTrail) -> dict[int, Route]:
    """The same routes; those that administrate leave traces."""
    return {
        key: replace(
            route, handle=_Watched(route.api.name, route.handle, ACTIONS[route.api.name], trail)
        )
        if route.api.name in ACTIONS
        else route
        for key, route in served.items()
    }


def change(operation: str, resource: str, detail: str, answered: Any) -> AdminChange:
    """The requested change; `answered` has its error code, and perhaps a message."""
    reason = getattr(answered, "error_message", None) if answered.error_code else None
    return AdminChange(
        operation, resource[:MAX_NAME], detail[:MAX_DETAIL], answered.error_code, reason or ""
    )


def _entity(entry: Any) -> Entity:
    """The same for a request and its answer, whatever the order of its parts."""
    return entity_of((each.entity_type, each.entity_name) for each in entry.entity)
