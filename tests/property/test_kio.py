"""kio, made from Kafka's own schemas by others, reads and writes the same bytes as we do."""

import datetime as dt
import importlib
import io
import pkgutil
import types
import typing
import warnings
from dataclasses import fields, is_dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from protocol.codec import decode, encode_bytes
from protocol.registry import apis
from tests.support.clients.message_strategies import Whole, every_message, messages, name_of

ZERO = UUID(int=0)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NEWEST_LEFT_OUT = {
    "InitProducerId",  # 6: not listed by Kafka 4.3
    "ListTransactions",  # 2: asks with a regular expression
}
LAST_SECOND = 253_402_300_799  # datetime ends with the year 9999
KEPT_POSITIVE = {
    "session_lifetime_ms", "max_lifetime_ms", "renew_period_ms", "expiry_time_period_ms",
    "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms",
}  # fmt: skip
# What living clients still send and kio has not: Kafka 4 dropped these versions.
TOO_OLD_FOR_KIO = {
    *(("Produce", version) for version in range(3)), *(("Fetch", version) for version in range(4)),
    ("ListOffsets", 0), ("CreateTopics", 0), ("CreateTopics", 1), ("DeleteTopics", 0),
    ("DescribeConfigs", 0), ("OffsetForLeaderEpoch", 0), ("OffsetForLeaderEpoch", 1),
    ("DescribeLogDirs", 0),
}  # fmt: skip


def theirs(whole: Whole) -> Any:
    """kio's class for a message in a version; None where it has none."""
    api, cls, version = whole
    kind = "request" if cls is api.request else "response"
    try:
        module = importlib.import_module(f"kio.schema.{api.module}.v{version}.{kind}")
    except ModuleNotFoundError:
        return None
    return getattr(module, cls.__name__)


def our_name(field: Any) -> str:
    """kio drops the unit where the type says it."""
    unit = field.metadata.get("kafka_type", "")
    timed = unit.startswith(("timedelta", "datetime"))
    return f"{field.name}_ms" if timed else str(field.name)


def element_of(annotation: Any) -> Any:
    """The entity class in an annotation: X, X | None, tuple[X, ...] or tuple[X, ...] | None."""
    if is_dataclass(annotation):
        return annotation
    for part in typing.get_args(annotation):
        if (found := element_of(part)) is not None:
            return found
    return None


def to_kio(value: Any, field: Any) -> Any:
    """Turn one of our values into kio's."""
    element = element_of(field.type)
    match field.metadata.get("kafka_type"), value:
        case _, list():
            return tuple(entity(item, element) if element else item for item in value)
        case _, None if element and not allows_none(field.type):
            return element()
        case _, None:
            return None
        case _, _ if element:
            return entity(value, element)
        case "timedelta_i32" | "timedelta_i64", _:
            return dt.timedelta(milliseconds=value)
        case "datetime_i64", _:
            return None if value == -1 else EPOCH + dt.timedelta(milliseconds=value)
        case "error_code", _:
            return ErrorCode(value)
        case "uuid", _:
            return None if value == ZERO else value
        case "records", _:
            return bytes(value)
    return value


def allows_none(annotation: Any) -> bool:
    return isinstance(annotation, types.UnionType) and type(None) in typing.get_args(annotation)


def entity(message: Any, cls: Any) -> Any:
    """Turn one of our messages into kio's."""
    return cls(**{f.name: to_kio(getattr(message, our_name(f)), f) for f in fields(cls)})


def kept_in_range(message: Any) -> Any:
    """Bring times into the range that datetime has, and to seconds: kio loses fractions far off."""
    for name in getattr(message, "__fields__", ()):
        value = getattr(message, name)
        if name == "log_append_time_ms":
            message.log_append_time_ms = -1 if value < 0 else value % LAST_SECOND * 1000
        if name == "retention_time_ms":
            message.retention_time_ms = -1 if value < 0 else value % LAST_SECOND * 1000
        if name == "transaction_start_time_ms":
            message.transaction_start_time_ms = value % LAST_SECOND * 1000
        if name in KEPT_POSITIVE:
            setattr(message, name, value % LAST_SECOND * 1000)
        for item in value if isinstance(value, list) else [value]:
            kept_in_range(item)
    return message


@pytest.mark.parametrize("whole", [w for w in every_message() if theirs(w)], ids=name_of)
@settings(
    max_examples=max(10, settings.default.max_examples // 10),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_bytes_equal_those_of_kio(whole: Whole, data: st.DataObject) -> None:
    _, cls, version = whole
    message = kept_in_range(data.draw(messages(cls, version)))
    other = entity(message, theirs(whole))
    buffer = io.BytesIO()
    entity_writer(theirs(whole))(buffer, other)
    wire = encode_bytes(message, version)
    assert wire == buffer.getvalue()
    assert decode(cls, version, memoryview(buffer.getvalue())) == message
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read, size = entity_reader(theirs(whole))(wire, 0)
    assert (read, size) == (other, len(wire))


def test_kio_has_every_version_but_the_dropped_ones() -> None:
    absent = {(w[0].name, w[2]) for w in every_message() if theirs(w) is None}
    assert absent == TOO_OLD_FOR_KIO


def test_our_newest_versions_are_those_of_kio() -> None:
    for api in apis().values():
        package = importlib.import_module(f"kio.schema.{api.module}")
        newest = max(int(module.name[1:]) for module in pkgutil.iter_modules(package.__path__))
        assert api.max_version == newest - (api.name in NEWEST_LEFT_OUT), api.name
