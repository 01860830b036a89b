"""What time costs inside a broker: decisions on many segments, checks of small records, stamps.

The first two run in this process, with the broker's own code and thread settings: no network is in
them, and nothing of the other broker is like them.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import repeat
from statistics import median

from broker.daemon.serve import GC_THRESHOLDS, SWITCH_SECONDS
from config.topic import TopicConfig
from storage.files.partition_files import FilePool, PartitionFiles
from storage.log.lifecycle import limits_of
from storage.posix import PosixFileSystem
from storage.retention.plan import RetentionPlan, plan
from storage.retention.rolling import timer_deadline
from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segment import Segment
from storage.segment.times import facts_of
from storage.validation.batch_rules import BatchRules
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer
from tests.bench.pump import pump
from tests.bench.topics import topic
from tests.bench.wire import Wire

SEGMENTS, ROUNDS = 10_000, 5
SEGMENT_BYTES, SEGMENT_MS = 1 << 30, 60_000
TICK_SECONDS = 0.001
NOW_MS = 1_700_000_000_000
SMALL_RECORD_BYTES, SMALL_RECORDS = 100, 9_000  # a megabyte of them
STAMPED_RECORDS = 5_000


def log_of_many_segments() -> LogSnapshot:
    """Segments a minute apart whose times are known; half of them are older than a week."""
    fs = PosixFileSystem()
    files = PartitionFiles(fs, FilePool(fs), "/nowhere/t-0")
    begin = NOW_MS - TopicConfig().retention_ms - SEGMENTS // 2 * SEGMENT_MS
    segments = []
    for number in range(SEGMENTS):
        at = begin + number * SEGMENT_MS
        segment = Segment(files, number * 1000, SEGMENT_BYTES, at)
        segment.max_timestamp = segment.first_timestamp = at
        segment.first_arrival_ms = segment.last_arrival_ms = at
        segments.append(segment)
    end = SEGMENTS * 1000
    return LogSnapshot(0, end, end, end, tuple(segments), SEGMENT_BYTES, 0, None)


def decide(snapshot: LogSnapshot) -> RetentionPlan:
    """What the retention and the roll task do for such a log on a lane."""
    segments, log = facts_of(snapshot)
    found = plan(segments, log, limits_of(TopicConfig()), NOW_MS)
    for segment in snapshot.segments:
        timer_deadline(
            first_record_ms=segment.first_timestamp,
            first_arrival_ms=segment.first_arrival_ms,
            max_wait_ms=SEGMENT_MS,
            min_interval_ms=10_000,
            now_ms=NOW_MS,
        )
    return found


def measure_decisions(_: Peer, __: Scale) -> Mapping[str, float]:
    """How long the decisions take, and how long they keep a loop waiting from their thread."""
    snapshot = log_of_many_segments()
    took = []
    with as_the_broker_runs():
        for _round in range(ROUNDS):
            began = time.perf_counter()
            decide(snapshot)
            took.append(time.perf_counter() - began)
        held = asyncio.run(lateness_during(snapshot))
    return {"decisions": median(took) * 1000, "loop held": held * 1000}


@contextmanager
def as_the_broker_runs() -> Iterator[None]:
    """Its settings for threads and for the collection of garbage."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)


async def lateness_during(snapshot: LogSnapshot) -> float:
    """The latest that a timer of the loop was meanwhile: the median of some rounds, seconds."""
    loop = asyncio.get_running_loop()
    worst: list[float] = []
    for _round in range(ROUNDS):
        late = 0.0
        work = loop.run_in_executor(None, decide, snapshot)
        while not work.done():
            due = loop.time() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            late = max(late, loop.time() - due)
        worst.append(late)
    return median(worst)


def measure_validation(_: Peer, scale: Scale) -> Mapping[str, float]:
    """One batch of a megabyte, checked as every append is."""
    rules = BatchRules(TopicConfig())
    batch = memoryview(bytearray(batch_of(SMALL_RECORD_BYTES, SMALL_RECORDS, NOW_MS)))
    took = []
    for _round in range(max(5, int(scale.seconds * 100))):
        began = time.perf_counter()
        rules.check(batch, NOW_MS)
        took.append(time.perf_counter() - began)
    return {"a megabyte": median(took) * 1000 * 1e6 / len(batch)}


def measure_stamps(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Produce to topics of both kinds in turns, and how much slower the stamps make it."""
    request_bytes = SMALL_RECORD_BYTES * STAMPED_RECORDS
    count = max(3, scale.megabytes * 1_000_000 // request_bytes // ROUNDS // 2)
    rates: dict[str, list[float]] = {"CreateTime": [], "LogAppendTime": []}
    for number in range(ROUNDS):
        for kind in sorted(rates, reverse=bool(number % 2)):
            config = {**peer.cached_config, "message.timestamp.type": kind}
            with topic(peer.bootstrap, "stamps", config=config) as name, Wire(peer.bootstrap) as w:
                request = produce(name, batch_of(SMALL_RECORD_BYTES, STAMPED_RECORDS), acks=1)
                done = pump(w, name, repeat(request, count + 1), 5)
                rates[kind].append(count * request_bytes / 1e6 / done.seconds)
    create, append = (median(rates[kind]) for kind in rates)
    return {
        "CreateTime": create,
        "LogAppendTime": append,
        "slower": max(0.01, (create / append - 1) * 100),
    }


CELLS = (
    Cell(
        "decisions-10000-segments",
        (
            Figure("decisions", "ms", "lower", under=50),
            Figure("loop held", "ms", "lower", under=5),
        ),
        measure_decisions,
        only_ours=True,
    ),
    Cell(
        "validation-100b",
        (Figure("a megabyte", "ms", "lower", under=0.5),),
        measure_validation,
        only_ours=True,
    ),
    Cell(
        "produce-stamped-100b",
        (
            Figure("CreateTime", "MB/s", "higher"),
            Figure("LogAppendTime", "MB/s", "higher"),
            Figure("slower", "%", "lower", under=15),
        ),
        measure_stamps,
    ),
)
