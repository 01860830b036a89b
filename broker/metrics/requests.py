"""Metrics of requests: how many were answered, how long they took, and what went wrong."""

from collections.abc import Iterable
from typing import NamedTuple

from broker.metrics.declare import Durations, Metric, Sample, counter
from broker.runtime.probes import BrokerProbes, Histogram
from protocol.api import Api
from protocol.errors import ErrorCode


class RequestView(NamedTuple):
    """Services that metrics of requests read."""

    probes: BrokerProbes
    served: tuple[Api, ...]


def _api_names(view: RequestView) -> dict[int, str]:
    return {api.key: api.name for api in view.served}


def _requests(view: RequestView) -> Iterable[Sample]:
    return [
        ((name,), float(view.probes.latency[key].count)) for key, name in _api_names(view).items()
    ]


def _latencies(view: RequestView) -> Iterable[tuple[tuple[str, ...], Histogram]]:
    for key, name in _api_names(view).items():
        histogram = view.probes.latency[key]
        if histogram.count:
            yield (name,), histogram


def _errors(view: RequestView) -> Iterable[Sample]:
    names = _api_names(view)
    for (key, code), count in dict(view.probes.errors).items():
        known = code in ErrorCode._value2member_map_
        yield (names.get(key, "unknown"), ErrorCode(code).name if known else str(code)), count


def _crashes(view: RequestView) -> Iterable[Sample]:
    names = _api_names(view)
    for key, count in dict(view.probes.crashes).items():
        yield (names.get(key, "unknown"),), count


REQUEST_METRICS: tuple[Metric[RequestView], ...] = (
    counter("horolog_requests", "Requests answered.", ("api",), _requests),
    counter(
        "horolog_request_errors",
        "Error codes in answers, by API and Kafka's name of the code.",
        ("api", "error"),
        _errors,
    ),
    counter(
        "horolog_request_failures",
        "Requests that ended in an unexpected error; each closed its connection.",
        ("api",),
        _crashes,
    ),
)

REQUEST_DURATIONS: tuple[Durations[RequestView], ...] = (
    Durations(
        "horolog_request_duration_seconds",
        "Time from a complete request to its answer, waiting included.",
        ("api",),
        _latencies,
    ),
    Durations(
        "horolog_fetch_duration_seconds",
        "Time from a complete fetch to its answer, without the wait for records.",
        (),
        lambda view: [((), view.probes.fetch)],
    ),
    Durations(
        "horolog_time_lookup_duration_seconds",
        "Time of one look-up of an offset by time in one partition, from the disk or from memory.",
        (),
        lambda view: [((), view.probes.time_lookup)],
    ),
)
