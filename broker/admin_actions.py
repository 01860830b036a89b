"""Which APIs administrate, and how a request and its answer are told: one table, held complete.

`watched` puts the table around the handlers, so that none of them can forget its trace.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from broker.admin_trail import AdminTrail, Change, Who
from broker.context import RequestContext
from broker.deferred import Deferred
from broker.routes import Handler, Route

Changes = Iterable[Change]
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
    for topic in response.topics:
        for each in topic.partitions:
            yield change(
                "delete records",
                f"{topic.name}-{each.partition_index}",
                f"before={each.low_watermark}",
                each,
            )


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
    for topic in response.topics:
        for each in topic.partitions:
            name = f"{request.group_id} {topic.name}-{each.partition_index}"
            yield change("delete offsets", name, "", each)


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
        for topic in marker.topics:
            for each in topic.partitions:
                name = f"{topic.name}-{each.partition_index}"
                detail = f"producer_id={marker.producer_id} {end}"
                yield change("end transaction", name, detail, each)


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


def who_asks(context: RequestContext) -> Who:
    """The client of a request."""
    return Who(context.client_id[:MAX_DETAIL], context.client_host, context.listener_name)


def watched(served: Mapping[int, Route], trail: AdminTrail) -> dict[int, Route]:
    """The same routes; those that administrate leave traces."""
    return {
        key: replace(route, handle=partial(_handle, route.handle, ACTIONS[route.api.name], trail))
        if route.api.name in ACTIONS
        else route
        for key, route in served.items()
    }


def _handle(
    handle: Handler, describe: Described, trail: AdminTrail, request: Any, context: RequestContext
) -> Any:
    answer = handle(request, context)
    note = partial(_note, describe, trail, request, context)
    if isinstance(answer, Deferred):
        return _noted_later(answer, note)
    if isinstance(answer, Awaitable):
        return _noted_after(answer, note)
    return note(answer)


def _noted_later(answer: Deferred[Any], note: Callable[[Any], Any]) -> Deferred[Any]:
    """Not `after`: the client may be gone when it is done, and it is told all the same."""
    told: Deferred[Any] = Deferred()

    def settled(response: Any, error: BaseException | None) -> None:
        if error is not None:
            told.fail(error)
        else:
            told.resolve(note(response))

    answer.listen(settled)
    return told


async def _noted_after(answer: Awaitable[Any], note: Callable[[Any], Any]) -> Any:
    return note(await answer)


def _note(
    describe: Described, trail: AdminTrail, request: Any, context: RequestContext, response: Any
) -> Any:
    who = who_asks(context)
    for change in describe(request, response):
        trail.noted(who, change)
    return response


def change(operation: str, resource: str, detail: str, answered: Any) -> Change:
    """What was asked for; `answered` has its error code, and perhaps a message."""
    reason = getattr(answered, "error_message", None) if answered.error_code else None
    return Change(
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
