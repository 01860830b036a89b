"""Produce by prebuilt frames, one partition, five requests under way: the broker is the limit."""

from collections.abc import Mapping
from functools import partial
from itertools import repeat

from tests.bench.cell import Cell, Scale, cpu, rate
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer
from tests.bench.pump import pump
from tests.bench.topics import topic
from tests.bench.wire import Wire

DEPTH = 5
RECORDS_A_BATCH = {100: 5000, 1000: 500, 10_000: 50}
LABELS = {100: "100b", 1000: "1kb", 10_000: "10kb"}
ACKS = {"acks1": (1, False), "all": (-1, False), "all-fsync": (-1, True)}


def measure(
    record_bytes: int, acks: int, fsync: bool, peer: Peer, scale: Scale
) -> Mapping[str, float]:
    """MB of record values a second, and what the broker's CPU spent on each."""
    count = RECORDS_A_BATCH[record_bytes]
    requests = max(3, scale.megabytes * 1_000_000 // (record_bytes * count))
    config = peer.fsync_config if fsync else peer.cached_config
    with topic(peer.bootstrap, "produce", config=config) as name, Wire(peer.bootstrap) as wire:
        request = produce(name, batch_of(record_bytes, count), acks=acks)
        before = peer.cpu_seconds()
        done = pump(wire, name, repeat(request, requests + 1), DEPTH)
        after = peer.cpu_seconds()
    megabytes = requests * record_bytes * count / 1e6
    figures = {"rate": megabytes / done.seconds}
    if before is not None and after is not None:
        figures["broker CPU"] = (after - before) * 1000 / megabytes
    return figures


def cell(record_bytes: int, kind: str) -> Cell:
    acks, fsync = ACKS[kind]
    judged = kind == "acks1"
    figures = (
        rate(must=1.5 if judged else None, aim=3 if judged else None),
        cpu(must=0.5 if judged else None, aim=0.25 if judged else None),
    )
    name = f"produce-raw-{LABELS[record_bytes]}-{kind}"
    return Cell(name, figures, partial(measure, record_bytes, acks, fsync), fills_memory=True)


CELLS = tuple(cell(record_bytes, kind) for kind in ACKS for record_bytes in RECORDS_A_BATCH)
