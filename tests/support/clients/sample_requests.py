"""One request of each API and version about given names, and what an answer tells.

Built from the schemas by the names of fields, so that a new API has its request at once.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from protocol.api import Api
from protocol.schema import Message
from protocol.types import Array, BytesType, RecordsType, StringType, UuidType
from tests.support.worlds.handler_world import batch


class Named(NamedTuple):
    """The things that a request is about."""

    topic: str = "t"
    topic_id: UUID = UUID(int=0)
    group: str = "g"
    transactional_id: str = "x"


_TOPIC = {
    "name", "names", "topic", "topics", "topic_name", "topic_names", "resource_name",
    "subscribed_topic_names", "source_topics", "repartition_sink_topics",
}  # fmt: skip
_GROUP = {"group_id", "group_ids", "groups", "groups_names", "key", "coordinator_keys"}
_TRANSACTION = {"transactional_id", "transactional_ids", "v3_and_below_transactional_id"}
_NONE = {
    "group_instance_id", "instance_id", "rack_id", "subscribed_topic_regex", "server_assignor",
    "cursor", "assignments", "replica_state", "replicas", "configuration_keys", "states_filter",
    "types_filter", "state_filters", "producer_id_filters", "forgotten_topics_data",
    "transactional_id_pattern", "members_to_remove", "source_topic_regex", "task_offsets",
    "task_end_offsets",
}  # fmt: skip
_NUMBERS = {
    "acks": 1, "timeout_ms": 1000, "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000,
    "max_wait_ms": 0, "max_bytes": 1 << 20, "partition_max_bytes": 1 << 20, "replica_id": -1,
    "num_partitions": 1, "replication_factor": 1, "count": 2, "resource_type": 2,
    "session_epoch": -1, "current_leader_epoch": -1, "generation_id": -1, "producer_id": -1,
    "producer_epoch": -1, "max_timestamp": -1, "timestamp": -1, "max_num_offsets": 1,
    "generation_id_or_member_epoch": -1, "retention_time_ms": -1, "election_type": 0,
    "transaction_timeout_ms": 1000, "response_partition_limit": 100, "duration_filter": -1,
    "last_fetched_epoch": -1, "member_epoch": 0, "resource_pattern_type": 3, "operation": 3,
    "permission_type": 3, "resource_type_filter": 1, "pattern_type_filter": 1, "endpoint_type": 1,
    "committed_leader_epoch": -1, "leader_epoch": 0, "coordinator_epoch": 0,
}  # fmt: skip


def request_of(api: Api, version: int, named: Named) -> Any:
    """A request that would be served, but for the rights of who sends it."""
    return _message(api.request, version, named)


def _message(cls: type[Message], version: int, named: Named) -> Message:
    fields = {
        name: _value(name, spec, version, named)
        for name, spec in cls.__fields__.items()
        if spec.since <= version <= spec.until and name not in _NONE
    }
    if "topic_id" in fields and fields.keys() & {"name", "topic"}:
        del fields["topic_id"]  # one of them is enough, and some APIs refuse both
    return cls(**fields)


def _value(name: str, spec: Any, version: int, named: Named) -> Any:
    wire = spec.wire
    if isinstance(wire, Array):
        return [_element(name, wire.element, version, named)]
    if isinstance(wire, type) and issubclass(wire, Message):
        return _message(wire, version, named)
    return _scalar(name, wire, spec.fresh_default(), named)


def _element(name: str, element: Any, version: int, named: Named) -> Any:
    if isinstance(element, type) and issubclass(element, Message):
        return _message(element, version, named)
    return _scalar(name, element, 0, named)


def _scalar(name: str, wire: Any, default: Any, named: Named) -> Any:
    if isinstance(wire, RecordsType):
        return batch(b"v")
    if isinstance(wire, UuidType):
        return named.topic_id
    if isinstance(wire, StringType):
        return _text(name, named)
    if isinstance(wire, BytesType):
        return b""
    return _NUMBERS.get(name, default or 0)


def _text(name: str, named: Named) -> str:
    if name in _TOPIC:
        return named.topic
    if name in _GROUP:
        return named.group
    if name in _TRANSACTION:
        return named.transactional_id
    return {"principal": "User:a", "host": "*", "protocol_type": "consumer"}.get(name, "m")


def codes_in(answer: Any) -> Iterator[int]:
    """Every error code of an answer that is not 0."""
    for name, value in _fields(answer):
        if name.endswith("error_code") and value:
            yield value


def texts_in(answer: Any) -> Iterator[str]:
    """Every name in an answer; error messages are none."""
    for name, value in _fields(answer):
        if isinstance(value, str) and not name.endswith("message"):
            yield value


def _fields(answer: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(answer, Message):
        for field in answer.__fields__:
            yield from _fields(getattr(answer, field), field)
    elif isinstance(answer, list):
        for each in answer:
            yield from _fields(each, name)
    else:
        yield name, answer
