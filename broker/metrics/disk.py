"""Metrics of the disk under the data directory: room, reserve, ballast."""

from collections.abc import Iterable
from typing import NamedTuple

from broker.guards.disk_space import DiskSpace
from broker.metrics.declare import Metric, Sample, counter, gauge, one
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.errors import DiskError


class DiskView(NamedTuple):
    """Services that metrics of the disk read."""

    env: Env
    log_dir: str
    disk_space: DiskSpace
    logs: LogManager


def _free_bytes(view: DiskView) -> Iterable[Sample]:
    """No sample of a disk that does not say: all other metrics tell what has become of it."""
    try:
        return [((), float(view.env.fs.free_bytes(view.log_dir)))]
    except DiskError:
        return []


DISK_METRICS: tuple[Metric[DiskView], ...] = (
    gauge(
        "horolog_disk_free_bytes",
        "Space left for the data directory.",
        (),
        _free_bytes,
    ),
    gauge(
        "horolog_disk_size_bytes",
        "Size of the disk that holds the data directory.",
        (),
        one(lambda view: view.disk_space.capacity_bytes),
    ),
    gauge(
        "horolog_disk_reserve_bytes",
        "Free space below which records are refused (horolog.disk.reserve.bytes).",
        (),
        one(lambda view: view.disk_space.reserve_bytes),
    ),
    gauge(
        "horolog_disk_ballast_bytes",
        "Space that can still be released on a full disk (horolog.disk.ballast.bytes).",
        (),
        one(lambda view: view.logs.ballast.size_bytes),
    ),
    gauge(
        "horolog_disk_low",
        "1 while records are refused because the disk is below its reserve.",
        (),
        one(lambda view: float(view.disk_space.is_low)),
    ),
    gauge(
        "horolog_disk_scarce",
        "1 while less is free than the reserve and the margin above it.",
        (),
        one(lambda view: float(view.disk_space.is_scarce)),
    ),
    counter(
        "horolog_disk_refused_batches",
        "Batches refused because the disk was below its reserve.",
        (),
        one(lambda view: view.disk_space.refused_batches),
    ),
)
