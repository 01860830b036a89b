"""Look-ups by time on a filled log of 1 KB records, clean or behind one record of 2055.

Each batch carries the time of its sending, as a client's does, so record time and arrival go
together. The other broker knows one clock; its figure stands beside each of ours. On the dirty log
it answers offset 0 to everything, as we do by record time: that is the rule.
"""

import random
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice

from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.records.batch import set_max_timestamp
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.frames import (
    BASE_TIMESTAMP_AT,
    INT64,
    LIST_OFFSETS_VERSION,
    batch_of,
    offset_at,
    produce,
)
from tests.bench.peers import Peer
from tests.bench.pump import percentile, pump, refuse
from tests.bench.topics import topic
from tests.bench.wire import BenchFailed, Wire, answer

RECORD_BYTES, RECORDS_A_BATCH = 1000, 16
BYTES_A_MEGABYTE = 1_340_000  # the full scale fills one GiB
IN_2055_MS = 2_682_374_400_000
NO_BOUND = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
CLOCKS = ("record", "arrival", "earlier")
TOPIC_RESOURCE, SET = 2, 0
LEFT_OUT = 10  # batches at the begin, in whose zone the dirty record is, and the pause behind them
PAUSE_SECONDS = 0.05


class SentLog:
    """Batches of now, and when each one was sent; behind a dirty record or not."""

    def __init__(self, *, is_dirty: bool) -> None:
        self.is_dirty = is_dirty
        self.times_ms: list[int] = []

    def batches(self) -> Iterator[bytes]:
        """Endless; each one is stamped when it is taken."""
        batch = bytearray(batch_of(RECORD_BYTES, RECORDS_A_BATCH, 0))
        while True:
            if len(self.times_ms) == LEFT_OUT:
                time.sleep(PAUSE_SECONDS)
            at = time.time_ns() // 1_000_000
            INT64.pack_into(batch, BASE_TIMESTAMP_AT, at)
            set_max_timestamp(memoryview(batch), 0, len(batch), at)
            self.times_ms.append(at)
            yield bytes(batch)

    def answer_to(self, timestamp: int, clock: str) -> int:
        """The first offset that was sent at that time or later; or 0, for the dirty record."""
        if self.is_dirty and clock == "record":
            return 0
        return self.is_dirty + bisect_left(self.times_ms, timestamp) * RECORDS_A_BATCH


def measure(dirty: bool, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Round trips of single look-ups at random times, by each clock that the peer has."""
    with (
        topic(peer.bootstrap, "lookup", config={**peer.cached_config, **NO_BOUND}) as name,
        Wire(peer.bootstrap) as wire,
    ):
        log = fill(wire, name, scale, dirty)
        figures: dict[str, float] = {}
        for clock in CLOCKS:
            if peer.name == "horolog":
                set_clock(wire, name, clock)
            if peer.name == "horolog" or clock == "record":
                figures |= look_ups(wire, name, log, clock, scale.lookups)
            else:
                figures |= {f"{clock} {p}": figures[f"record {p}"] for p in ("p50", "p99")}
        return figures


def fill(wire: Wire, name: str, scale: Scale, dirty: bool) -> SentLog:
    count = max(50, scale.megabytes * BYTES_A_MEGABYTE // (RECORD_BYTES * RECORDS_A_BATCH))
    if dirty:
        request = produce(name, batch_of(RECORD_BYTES, 1, IN_2055_MS), acks=1)
        pump(wire, name, [request], 1)
    log = SentLog(is_dirty=dirty)
    pump(wire, name, (produce(name, b, acks=1) for b in islice(log.batches(), count)), 5)
    return log


def set_clock(wire: Wire, name: str, clock: str) -> None:
    setting = AlterableConfig(name="horolog.search.clock", config_operation=SET, value=clock)
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configs=[setting]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    refuse(wire.call("IncrementalAlterConfigs", 1, request).responses[0].error_code)


def look_ups(wire: Wire, name: str, log: SentLog, clock: str, count: int) -> Mapping[str, float]:
    """p50 and p99 in ms; every answer is looked at."""
    template, asked = offset_at(name), random.Random(5)
    times = log.times_ms[LEFT_OUT:]
    latencies: list[int] = []
    for warming in (True, False):
        for _ in range(count):
            wanted = asked.choice(times)
            request = template.with_number(wanted)
            began = time.perf_counter_ns()
            wire.send(request)
            received = wire.receive_alone()
            took = time.perf_counter_ns() - began
            if not warming:
                latencies.append(took)
            found = answer("ListOffsets", LIST_OFFSETS_VERSION, received).topics[0].partitions[0]
            refuse(found.error_code)
            check(found.offset, log.answer_to(wanted, clock), clock)
    return {
        f"{clock} p50": percentile(latencies, 50) / 1e6,
        f"{clock} p99": percentile(latencies, 99) / 1e6,
    }


def check(offset: int, expected: int, clock: str) -> None:
    """By arrival a zone counts as a whole: the answer lies at or before the record's own."""
    is_right = 0 <= offset <= expected if clock == "arrival" else offset == expected
    if not is_right:
        raise BenchFailed(f"by {clock} offset {offset} in place of {expected}")


FIGURES = tuple(
    Figure(f"{clock} p{percent}", "ms", "lower", must=1.0, aim=0.5)
    for clock in CLOCKS
    for percent in (50, 99)
)
CELLS = (
    Cell("lookup-clean", FIGURES, partial(measure, False)),
    Cell("lookup-dirty", FIGURES, partial(measure, True)),
)
