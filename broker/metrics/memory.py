"""The account of memory, by class."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from broker.metrics.declare import Metric, Sample, counter, gauge
from broker.runtime.memory_account import MemoryAccount, MemoryClass


class MemoryView(NamedTuple):
    """The service that metrics of memory read."""

    memory: MemoryAccount


def _by_class(
    read: Callable[[MemoryAccount, MemoryClass], int],
) -> Callable[[MemoryView], Iterable[Sample]]:
    def samples(view: MemoryView) -> Iterable[Sample]:
        return [((kind.value,), float(read(view.memory, kind))) for kind in MemoryClass]

    return samples


MEMORY_METRICS: tuple[Metric[MemoryView], ...] = (
    gauge(
        "horolog_memory_used_bytes",
        "Memory that clients make the broker hold, by what it is for.",
        ("class",),
        _by_class(MemoryAccount.used),
    ),
    gauge(
        "horolog_memory_limit_bytes",
        "Limit of each class; see horolog.memory.max.bytes.",
        ("class",),
        _by_class(MemoryAccount.share),
    ),
    counter(
        "horolog_memory_refusals",
        "Requests for memory that were refused since the class's share was full.",
        ("class",),
        _by_class(MemoryAccount.refusals),
    ),
)
