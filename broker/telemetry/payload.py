"""Reading of a push: bounded unpacking, then OTLP's MetricsData. Runs on a lane.

The unpacked size is bounded by what a push may have packed; of a large one, the messages in it are
counted before the library reads them. Of sums and gauges each point counts; histograms and
summaries are dropped: no client pushes them.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.telemetry.message_count import BadMessage, TooManyMessages, check_message_count
from broker.telemetry.points import (
    COUNTER,
    GAUGE,
    MOST_CHARACTERS_OF_A_VALUE,
    MOST_LABELS,
    ClientName,
    DroppedPoint,
    MetricPoint,
    label_name,
    labels_of,
    metric_name,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.records.compression import Codec, InflateLimit, inflate

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, NumberDataPoint

MOST_POINTS = 1000
"""Of a push: the rest is dropped, and counted."""
MOST_METRICS = 10_000
"""Of a push, with the resources and scopes they stand in: a push with more is refused."""
SMALL_BYTES = 64 * 1024
"""A push of this size is read uncounted."""
MOST_MESSAGES = 100_000
"""Of a push, attributes and their values among them: a push with more is refused."""
NO_VALUE_FLAG = 1
OTHER_KINDS = ("histogram", "exponential_histogram", "summary")


@dataclass(slots=True)
class ReadPush:
    """The points of a push, and how many were dropped, by the reason."""

    points: list[MetricPoint] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    looked_at: int = 0
    """Points that were read, dropped ones too."""


def read_push(codec: Codec, packed: bytes, most_bytes: int, client: ClientName) -> ReadPush:
    """Points that a client pushed.

    KafkaError: TELEMETRY_TOO_LARGE (118) when it unpacks to more than `most_bytes`, INVALID_RECORD
    (87) when it cannot be unpacked or read.
    """
    data = _parsed(bytes(_unpacked(codec, packed, most_bytes)))
    push = ReadPush()
    for metric, shared in _metrics(data):
        _read_metric(metric, shared, client, push)
    return push


def _unpacked(codec: Codec, packed: bytes, most_bytes: int) -> bytes | bytearray | memoryview:
    try:
        return inflate(codec, packed, limit_bytes=most_bytes)
    except InflateLimit as error:
        raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, str(error)) from None
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None


def _parsed(data: bytes) -> "MetricsData":
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    try:
        if len(data) > SMALL_BYTES:
            check_message_count(data, MetricsData.DESCRIPTOR, MOST_MESSAGES)
        read: MetricsData = MetricsData.FromString(data)
    except TooManyMessages as error:
        raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, str(error)) from None
    except (DecodeError, BadMessage) as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
    return read


def _metrics(data: "MetricsData") -> Iterator[tuple["Metric", "Iterable[KeyValue]"]]:
    """The metrics, each with the attributes that all its points have."""
    left = MOST_METRICS
    for resource in data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                yield metric, resource.resource.attributes
            left -= len(scope.metrics)
            _check_left(left)
        left -= 1 + len(resource.scope_metrics)
        _check_left(left)


def _check_left(left: int) -> None:
    if left < 0:
        raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, f"More than {MOST_METRICS} metrics")


def _read_metric(
    metric: "Metric", shared: "Iterable[KeyValue]", client: ClientName, push: ReadPush
) -> None:
    field_name = metric.WhichOneof("data")
    if field_name is None:
        return
    points = getattr(metric, field_name).data_points
    if field_name in OTHER_KINDS:
        push.dropped["kind"] += len(points)
        return
    kind, is_delta = _kind(metric)
    try:
        name, common = metric_name(metric.name, kind), _attributes(shared)
    except DroppedPoint as error:
        push.dropped[error.reason] += len(points)
        return
    for point in _in_room(points, push):
        try:
            labels = labels_of(client, {**common, **_attributes(point.attributes)})
            value = _value(point, is_counter=kind == COUNTER)
        except DroppedPoint as error:
            push.dropped[error.reason] += 1
        else:
            if value is not None:
                push.points.append(MetricPoint(name, metric.name, kind, labels, value, is_delta))


def _in_room(points: "Sequence[NumberDataPoint]", push: ReadPush) -> "Sequence[NumberDataPoint]":
    """Those of the points that the push may still have."""
    taken = min(len(points), MOST_POINTS - push.looked_at)
    push.looked_at += taken
    if taken < len(points):
        push.dropped["push_limit"] += len(points) - taken
    return points[:taken]


def _kind(metric: "Metric") -> tuple[str, bool]:
    """The kind of series, and whether its points are changes."""
    from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA

    if metric.WhichOneof("data") == "gauge":
        return GAUGE, False
    is_delta = metric.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA
    return COUNTER if metric.sum.is_monotonic else GAUGE, is_delta


def _value(point: "NumberDataPoint", *, is_counter: bool) -> float | None:
    """None where the client says that there is no value. DroppedPoint for a nonsense one."""
    if point.flags & NO_VALUE_FLAG:
        return None
    field_name = point.WhichOneof("value")
    if field_name is None:
        raise DroppedPoint("value")
    value = float(getattr(point, field_name))
    if is_counter and not (math.isfinite(value) and value >= 0):
        raise DroppedPoint("value")
    return value


def _attributes(attributes: "Iterable[KeyValue]") -> dict[str, str]:
    """Attributes as labels. DroppedPoint for too many, or for one that is no plain value."""
    labels = {}
    for number, each in enumerate(attributes):
        if number >= MOST_LABELS:
            raise DroppedPoint("labels")
        labels[label_name(each.key)] = _text(each)
    return labels


def _text(attribute: "KeyValue") -> str:
    value = attribute.value
    match value.WhichOneof("value"):
        case "string_value":
            text = value.string_value
        case "bool_value":
            text = "true" if value.bool_value else "false"
        case "int_value":
            text = str(value.int_value)
        case "double_value":
            text = repr(value.double_value)
        case _:
            raise DroppedPoint("labels")
    return text[:MOST_CHARACTERS_OF_A_VALUE]
