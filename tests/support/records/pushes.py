"""Pushes of clients' metrics (KIP-714), as OTLP's MetricsData."""

from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def attributes(labels: dict[str, Any]) -> list[KeyValue]:
    """Attributes with text, truth values or numbers."""
    return [KeyValue(key=key, value=_any(value)) for key, value in labels.items()]


def _any(value: Any) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case None:
            return AnyValue()
        case _:
            return AnyValue(string_value=str(value))


def point(
    value: float | None, labels: dict[str, Any] | None = None, *, flags: int = 0
) -> NumberDataPoint:
    """One value of a series; None is none."""
    made = NumberDataPoint(attributes=attributes(labels or {}), flags=flags)
    if value is not None:
        made.as_double = value
    return made


def gauge(name: str, *points: NumberDataPoint) -> Metric:
    """A gauge."""
    return Metric(name=name, gauge=Gauge(data_points=points))


def total(
    name: str, *points: NumberDataPoint, temporality: Any = DELTA, grows: bool = True
) -> Metric:
    """A sum."""
    return Metric(
        name=name,
        sum=Sum(data_points=points, aggregation_temporality=temporality, is_monotonic=grows),
    )


def histogram(name: str) -> Metric:
    """A histogram with one point."""
    return Metric(name=name, histogram=Histogram(data_points=[HistogramDataPoint(count=1)]))


def push_of(*metrics: Metric, resource: dict[str, Any] | None = None) -> bytes:
    """Everything that one push has, not packed."""
    of_all = Resource(attributes=attributes(resource or {}))
    scope = ScopeMetrics(metrics=metrics)
    return bytes(
        MetricsData(
            resource_metrics=[ResourceMetrics(resource=of_all, scope_metrics=[scope])]
        ).SerializeToString()
    )
