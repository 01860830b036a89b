"""Metrics of the disk under the data directory: room, reserve, ballast."""

from broker.metrics.declare import Metric, counter, gauge, one

DISK_METRICS: tuple[Metric, ...] = (
    gauge(
        "horolog_disk_free_bytes",
        "Space left for the data directory.",
        (),
        one(lambda broker: broker.env.fs.free_bytes(broker.log_dir)),
    ),
    gauge(
        "horolog_disk_size_bytes",
        "Size of the disk that holds the data directory.",
        (),
        one(lambda broker: broker.disk_space.capacity_bytes),
    ),
    gauge(
        "horolog_disk_reserve_bytes",
        "Free space below which records are refused (horolog.disk.reserve.bytes).",
        (),
        one(lambda broker: broker.disk_space.reserve_bytes),
    ),
    gauge(
        "horolog_disk_ballast_bytes",
        "Space that can still be released on a full disk (horolog.disk.ballast.bytes).",
        (),
        one(lambda broker: broker.logs.ballast.size_bytes),
    ),
    gauge(
        "horolog_disk_low",
        "1 while records are refused because the disk is below its reserve.",
        (),
        one(lambda broker: float(broker.disk_space.is_low)),
    ),
    counter(
        "horolog_disk_refused_batches",
        "Batches refused because the disk was below its reserve.",
        (),
        one(lambda broker: broker.disk_space.refused_batches),
    ),
)
