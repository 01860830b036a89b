"""The administrative APIs and the events of their requests and answers: one table.

`watched` applies the table to the handlers, so that none of them can forget its trace.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from broker.runtime.admin_trail import AdminChange, AdminTrail, Who
from broker.runtime.deferred import Deferred
from broker.runtime.request_context import RequestContext
from broker.server.route import Handler, Route
from protocol.errors import ErrorCode, KafkaError

Changes = Iterable[AdminChange]
Described = Callable[[Any, Any], Changes]

MAX_DETAIL = 200  # characters
MAX_NAME = 600
_KINDS = {2: "topic", 4: "broker"}
_VERBS = {0: "=", 1: " deleted", 2: "+=", 3: "-="}


def _created(request: Any, response: Any) -> Changes:
    if request.validate_only:
        return
    settings = {each.name: _texts(each.configs) for each in request.topics}
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


def _altered(request: Any, response: Any) -> Changes:
    if request.validate_only:
        return
    for resource, each in zip(request.resources, response.responses, strict=True):
        kind = _KINDS.get(each.resource_type, str(each.resource_type))
        name = f"{kind} {each.resource_name}".strip()
        yield change("alter settings", name, _texts(resource.configs), each)


def _groups_deleted(_: Any, response: Any) -> Changes:
    for each in response.results:
        yield change("delete group", each.group_id, "", each)


def _offsets_deleted(request: Any, response: Any) -> Changes:
    if response.error_code:
        yield change("delete offsets", request.group_id, "", response)
    for place, each in _partitions(response.topics):
        yield change("delete offsets", f"{request.group_id} {place}", "", each)


def _quotas(request: Any, response: Any) -> Changes:
    if request.validate_only:
        return
    ops = {_entity(each): each.ops for each in request.entries}
    for each in response.entries:
        name = _entity(each)
        detail = " ".join(
            f"{op.key} deleted" if op.remove else f"{op.key}={op.value:g}"
            for op in ops.get(name, ())
        )
        yield change("alter quota", name, detail, each)


def _transactions_ended(request: Any, response: Any) -> Changes:
    ends = {each.producer_id: each.transaction_result for each in request.markers}
    for marker in response.markers:
        end = "commit" if ends.get(marker.producer_id) else "abort"
        for place, each in _partitions(marker.topics):
            yield change("end transaction", place, f"producer_id={marker.producer_id} {end}", each)


ACTIONS: Mapping[str, Described] = MappingProxyType(
    {
        "CreateTopics": _created,
        "DeleteTopics": _deleted,
        "CreatePartitions": _grown,
        "DeleteRecords": _emptied,
        "AlterConfigs": _altered,
        "IncrementalAlterConfigs": _altered,
        "DeleteGroups": _groups_deleted,
        "OffsetDelete": _offsets_deleted,
        "AlterClientQuotas": _quotas,
        "WriteTxnMarkers": _transactions_ended,
    }
)
NO_ACTIONS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        (
            "ApiVersions", "ConsumerGroupDescribe", "DescribeClientQuotas", "DescribeCluster",
            "DescribeConfigs", "DescribeGroups", "DescribeLogDirs", "DescribeProducers",
            "DescribeTopicPartitions", "DescribeTransactions", "Fetch", "FindCoordinator",
            "ListGroups", "ListOffsets", "ListPartitionReassignments", "ListTransactions",
            "OffsetFetch", "OffsetForLeaderEpoch", "SaslHandshake",
        ),
        "it only asks",
    )
    | dict.fromkeys(
        (
            "Produce", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn",
            "TxnOffsetCommit", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup",
            "ConsumerGroupHeartbeat",
        ),
        "it is what clients do all day",
    )
    | dict.fromkeys(("ElectLeaders", "AlterPartitionReassignments"), "one node changes nothing")
    | {
        "Metadata": "it makes topics, and tells so itself",
        "OffsetCommit": "it sets offsets for who is no member, and tells so itself",
    }
)  # fmt: skip


def who_asks(context: RequestContext[Any]) -> Who:
    """The client of a request."""
    return Who(context.client_id[:MAX_DETAIL], context.client_host, context.listener_name)


@dataclass(frozen=True, slots=True)
class _Watched:
    """A handler of an API that administrates: whatever comes of a request leaves its trace."""

    name: str
    handle: Handler
    describe: Described
    trail: AdminTrail

    def __call__(self, request: Any, context: RequestContext[Any]) -> Any:
        """Answers as the handler does."""
        try:
            answer = self.handle(request, context)
        except Exception as error:
            self._failed(context, error)
            raise
        if isinstance(answer, Deferred):
            return self._later(answer, request, context)
        if isinstance(answer, Awaitable):
            return self._after(answer, request, context)
        return self._note(request, context, answer)

    def _later(self, answer: Deferred[Any], request: Any, context: RequestContext[Any]) -> Any:
        """Traces a later answer. No `gathering.after`: it must be traced although the client is
        gone.
        """
        answered: Deferred[Any] = Deferred()

        def settled(response: Any, error: BaseException | None) -> None:
            if error is not None:
                self._failed(context, error)
                answered.fail(error)
            else:
                answered.resolve(self._note(request, context, response))

        answer.listen(settled)
        return answered

    async def _after(
        self, answer: Awaitable[Any], request: Any, context: RequestContext[Any]
    ) -> Any:
        try:
            response = await answer
        except Exception as error:
            self._failed(context, error)
            raise
        return self._note(request, context, response)

    def _note(self, request: Any, context: RequestContext[Any], response: Any) -> Any:
        who = who_asks(context)
        for each in self.describe(request, response):
            self.trail.noted(who, each)
        return response

    def _failed(self, context: RequestContext[Any], error: BaseException) -> None:
        """Nobody can say what was done and what was not."""
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        reason = f"{type(error).__name__}: {error}"[:MAX_DETAIL]
        self.trail.noted(who_asks(context), AdminChange(self.name, "", "", code, reason))


def watched(served: Mapping[int, Route], trail: AdminTrail) -> dict[int, Route]:
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


def _texts(configs: Iterable[Any]) -> str:
    return " ".join(
        f"{each.name}{_VERBS.get(verb, '=')}{'' if verb == 1 else each.value}"
        for each in configs
        for verb in (getattr(each, "config_operation", 0),)
    )


def _entity(entry: Any) -> str:
    return " ".join(
        f"{each.entity_type}={each.entity_name or '(default)'}" for each in entry.entity
    )
