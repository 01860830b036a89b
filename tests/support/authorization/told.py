"""The part of an answer that rights decide, in a shape by which two brokers are compared.

Kept are every error code, every name, every set of authorized operations and, beside a code that
refuses, its text. Elements of an array are sorted: their order is nobody's promise. Offsets, times,
addresses and what else depends on the day are left out, as are topics of the broker itself, which
each broker has others of; of the settings of a resource only whether there are any.
"""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from protocol.schema import struct_of
from protocol.structs import MessageStruct, NullableStruct, TagSection
from protocol.types import Array

Shape = dict[str, Any]
NAMES = {
    "name", "topic", "topic_name", "group_id", "transactional_id", "key", "resource_name",
    "entity_name", "member_id", "node_id", "user", "principal", "operation", "permission_type",
    "principal_name", "token_requester_principal_name",
}  # fmt: skip
CODES_OF_REFUSAL = {29, 30, 31, 53, 65}
"""The codes *_AUTHORIZATION_FAILED: of topic, group, cluster, transactional id, token."""
UNTOLD = {"api_keys", "supported_features", "finalized_features", "brokers", "node_endpoints"}
"""Arrays that say nothing of a right."""
DUMP = "Request Request("
"""The beginning of a text that is an object of Kafka's, printed."""


def shape_of(api: Any, version: int, answer: Any, ids: Mapping[UUID, str]) -> Shape:
    """The shape of an answer; `ids` are the topics' names, by id."""
    return _struct(struct_of(api.response, version), answer, ids)


def _struct(struct: MessageStruct, value: Any, ids: Mapping[UUID, str]) -> Shape:
    shape: Shape = {}
    for part in struct.subcons:
        if isinstance(part.subcon, TagSection):
            for tag in part.subcon.tags.values():
                _field(shape, tag.name, tag.wire, getattr(value, tag.name), ids)
        else:
            _field(shape, part.name, part.subcon, getattr(value, part.name), ids)
    codes = {code for name, code in shape.items() if name.endswith("error_code")}
    text = getattr(value, "error_message", None)
    if codes & CODES_OF_REFUSAL and text:
        shape["error_message"] = "a dump" if DUMP in text else text
    return shape


def _field(shape: Shape, name: str, wire: Any, value: Any, ids: Mapping[UUID, str]) -> None:
    if name in UNTOLD or name == "error_message":
        return
    if name == "configs":
        shape[name] = bool(value)
    elif isinstance(value, UUID):
        if name == "topic_id" and value.int:
            shape[name] = ids.get(value, "unknown")
    elif _is_kept(name):
        shape[name] = value
    elif found := _inner(wire, value, ids):
        shape[name] = found


def _inner(wire: Any, value: Any, ids: Mapping[UUID, str]) -> Shape | list[Shape]:
    """The shapes in a struct, or in an array of them; nothing for everything else."""
    if isinstance(wire, NullableStruct):
        wire = wire.struct
    if isinstance(wire, MessageStruct) and value is not None:
        return _struct(wire, value, ids)
    if isinstance(wire, Array) and isinstance(wire.element, MessageStruct):
        shown = [each for each in value or () if not getattr(each, "is_internal", False)]
        told = [_struct(wire.element, each, ids) for each in shown]
        return sorted((each for each in told if each), key=json.dumps)
    return {}


def _is_kept(name: str) -> bool:
    return name in NAMES or name.endswith(("error_code", "authorized_operations"))
