"""Metrics of what reaches the disk, and of what a start had to mend."""

from typing import NamedTuple

from broker.metrics.declare import Durations, Metric, counter, gauge, labelled, one
from broker.partitions.group_commit import GroupCommit
from broker.record_times.quarantine import Quarantine
from broker.runtime.probes import BrokerProbes
from broker.server.server import Server
from storage.directory.log_manager import LogManager


class DurabilityView(NamedTuple):
    """Services that metrics of durability read."""

    quarantine: Quarantine
    probes: BrokerProbes
    commit: GroupCommit
    server: Server
    logs: LogManager


DURABILITY_METRICS: tuple[Metric[DurabilityView], ...] = (
    counter(
        "horolog_quarantine_refusals",
        "Batches refused because their quarantine could not be used, or its disk failed.",
        ("reason",),
        lambda view: labelled(view.quarantine.refusals),
    ),
    counter(
        "horolog_fsync_errors",
        "Failed fsyncs; each took its partition offline.",
        (),
        one(lambda view: view.probes.fsync_errors),
    ),
    counter(
        "horolog_refused_writes",
        "Batches that a disk refused to take; nothing of them was stored.",
        (),
        one(lambda view: view.probes.refused_writes),
    ),
    gauge(
        "horolog_unsynced_bytes",
        "Bytes written and not yet forced to the disk.",
        (),
        one(lambda view: view.commit.unsynced_bytes),
    ),
    counter(
        "horolog_cold_fetches",
        "Reads that had to go to the disk before records could be sent.",
        (),
        one(lambda view: view.server.page_cache.visits),
    ),
    gauge(
        "horolog_recovered_logs",
        "Logs that had to be recovered at the start.",
        (),
        one(lambda view: view.logs.recovered_logs),
    ),
    gauge(
        "horolog_recovery_cut_bytes",
        "Bytes cut off logs that were recovered: tails that had never been durable.",
        (),
        one(lambda view: view.logs.cut_bytes.total()),
    ),
    counter(
        "horolog_rebuilt_indexes",
        "Segments whose indexes were rebuilt since the start.",
        (),
        one(lambda view: view.logs.rebuilt_indexes),
    ),
)

DURABILITY_DURATIONS: tuple[Durations[DurabilityView], ...] = (
    Durations(
        "horolog_fsync_duration_seconds",
        "Time of one fsync of one log.",
        (),
        lambda view: [((), view.probes.fsync)],
    ),
)
