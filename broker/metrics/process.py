"""Use of resources by the broker's process and its event loop; the metrics library has the rest."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.runtime.probes import BrokerProbes


class ProcessView(NamedTuple):
    """The service that metrics of the process read."""

    probes: BrokerProbes


OWN_INPUT_OUTPUT = Path("/proc/self/io")  # of the system, not on the data's disk


def disk_bytes(direction: str) -> Iterable[Sample]:
    """Bytes that this process has made the disk `read` or `write`; no sample where unknown."""
    try:
        text = OWN_INPUT_OUTPUT.read_text()
    except OSError:
        return []
    counters = dict(line.split(": ") for line in text.splitlines())
    return [((), float(counters[f"{direction}_bytes"]))]


PROCESS_METRICS: tuple[Metric[ProcessView], ...] = (
    counter(
        "horolog_process_disk_read_bytes",
        "Bytes that this process has made the disk read.",
        (),
        lambda _: disk_bytes("read"),
    ),
    counter(
        "horolog_process_disk_written_bytes",
        "Bytes that this process has made the disk write.",
        (),
        lambda _: disk_bytes("write"),
    ),
    counter(
        "horolog_event_loop_busy_seconds",
        "CPU time of the event loop's thread, which serves all clients.",
        (),
        one(lambda view: view.probes.loop_busy_seconds),
    ),
    gauge(
        "horolog_event_loop_idle_ratio",
        "Share of the last second in which the event loop had nothing to do.",
        (),
        one(lambda view: view.probes.loop_idle_ratio),
    ),
    gauge(
        "horolog_event_loop_lag_seconds",
        "Delay of the event loop when last measured.",
        (),
        one(lambda view: view.probes.loop_lag_seconds),
    ),
    gauge(
        "horolog_event_loop_lag_max_seconds",
        "Largest delay of the event loop since the start.",
        (),
        one(lambda view: view.probes.loop_lag_max_seconds),
    ),
)
