"""Look-ups by time in a tier, on disordered and dirty records; each answer is compared.

Warm: all that is asked for is here, as far as a broker keeps it. Cold: the first look-up into a
segment since the start. Narrow: our cache is an eighth of the data, so most look-ups ask the store.
Kafka keeps indexes and no data; its store is a directory, ours is reached over HTTP.
"""

import time
from bisect import bisect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final

from tests.bench.cell import Cell, Figure, Scale
from tests.bench.peers import Peer
from tests.bench.tier.bad_topic import CLOCK_HELD, TOPIC, make_bad_topic, times_to_ask
from tests.bench.tier.look_ups import CLOCKS, LookUps, ask_all, percentiles
from tests.bench.tier.nodes import TieredNode, tiered
from tests.bench.wire import BenchFailed
from tests.support.tier_times.known_times import KnownTimes

MEGABYTE: Final = 1_000_000
LOOK_UPS_TIMES, STARTS = 34, 3
"""100,000 look-ups in the full scale; starts of a broker for cold ones."""
SEGMENTS, LEAST_SEGMENTS, LEAST_SEGMENT_BYTES = 64, 8, 1 << 20
NARROW_PART: Final = 8
READY_WITHIN_SECONDS: Final = 60
TRIED_TIMES: Final = 5_000
WARMING, COLD, NARROW = 1, 2, 3
"""Seeds of what is asked."""


def measure(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """All kinds on one topic."""
    wanted = scale.megabytes * MEGABYTE // 2
    segment_bytes = max(LEAST_SEGMENT_BYTES, wanted // SEGMENTS)
    size_bytes = max(wanted, LEAST_SEGMENTS * segment_bytes)
    with tiered(peer, {}, *CLOCK_HELD) as node:
        known = make_bad_topic(node, size_bytes, segment_bytes)
        figures = _cold(node, known, min(STARTS, max(1, scale.lookups // 100)))
        if node.is_ours:
            figures |= _narrow(node, known, scale.lookups, size_bytes // NARROW_PART)
        return figures | _warm(node, known, scale.lookups * LOOK_UPS_TIMES)


def _warm(node: TieredNode, known: KnownTimes, count: int) -> dict[str, float]:
    with LookUps(node, known) as asks:
        ask_all(asks, count // 20, WARMING)
        took = ask_all(asks, count, WARMING + 1)
        figures = {"exact": _exact_percent(asks), "unanswered": asks.unanswered}
    for kind in took:
        figures |= percentiles(took, kind)
    return figures


def _cold(node: TieredNode, known: KnownTimes, starts: int) -> dict[str, float]:
    took: list[int] = []
    requests = size_bytes = 0.0
    for number in range(starts):
        probe, *asked = _one_of_each_segment(node, known, COLD + number)
        node.again()
        _wait_for_store(node, known, probe)
        before = node.asked_of_store() if node.is_ours else None
        with LookUps(node, known) as asks:
            asks.by_clock(CLOCKS[0])
            took += [asks.first(each) for each in asked]
            _exact_percent(asks)
        if before is not None:
            bill = node.asked_of_store().since(before)
            requests, size_bytes = requests + bill.requests, size_bytes + bill.size_bytes
    figures = percentiles({"cold": took}, "cold")
    if node.is_ours:
        figures |= _bill("cold", requests / len(took), size_bytes / len(took))
    return figures


def _wait_for_store(node: TieredNode, known: KnownTimes, probe: int) -> None:
    """Until a look-up there is answered: Kafka reads its topic of the store's segments first."""
    ends = time.monotonic() + READY_WITHIN_SECONDS
    while not _answers(node, known, probe):
        if time.monotonic() > ends:
            raise BenchFailed("look-ups in the tier are refused")
        time.sleep(0.1)


def _answers(node: TieredNode, known: KnownTimes, timestamp: int) -> bool:
    with LookUps(node, known) as asks, suppress(BenchFailed):
        asks.by_clock(CLOCKS[0])
        asks.first(timestamp)
        return not asks.unanswered
    return False


def _narrow(node: TieredNode, known: KnownTimes, count: int, cache_bytes: int) -> dict[str, float]:
    """With a small cache for a while."""
    node.again({"horolog.tier.cache.bytes": str(cache_bytes)})
    with LookUps(node, known) as asks:
        asks.by_clock(CLOCKS[0])
        for timestamp in islice(times_to_ask(known, CLOCKS[0], WARMING), count // 4):
            asks.first(timestamp)
        before = node.asked_of_store()
        asked = islice(times_to_ask(known, CLOCKS[0], NARROW), count)
        took = [asks.first(each) for each in asked]
        bill = node.asked_of_store().since(before)
        _exact_percent(asks)
    node.again()
    narrow = _bill("narrow", bill.requests / len(took), bill.size_bytes / len(took))
    return {**percentiles({"narrow": took}, "narrow"), **narrow}


def _bill(kind: str, requests: float, size_bytes: float) -> dict[str, float]:
    return {f"{kind} requests": requests, f"{kind} KiB": size_bytes / 1024}


def _one_of_each_segment(node: TieredNode, known: KnownTimes, seed: int) -> Iterator[int]:
    """Times whose records are in different segments, all of them only in the store."""
    bases = node.stored_bases(TOPIC)
    local_start = node.local_bases(TOPIC)[0]
    seen: set[int] = set()
    for timestamp in islice(times_to_ask(known, CLOCKS[0], seed), TRIED_TIMES):
        offset = known.first(CLOCKS[0], timestamp).offset
        segment = bisect(bases, offset)
        if 0 <= offset < local_start and segment not in seen:
            seen.add(segment)
            yield timestamp


def _exact_percent(asks: LookUps) -> float:
    """Part of the answers that are those of the list: all of ours, else BenchFailed."""
    if asks.wrong and asks.has_clocks:
        raise BenchFailed(f"{len(asks.wrong)} of {asks.count} are wrong: {asks.wrong[0]}")
    return 100 * (1 - len(asks.wrong) / asks.count)


def _both(kind: str, must: float | None = None, aim: float | None = None) -> tuple[Figure, ...]:
    return tuple(Figure(f"{kind} p{percent}", "ms", "lower", must, aim) for percent in (50, 99))


FIGURES = (
    Figure("exact", "%", "higher"),
    Figure("unanswered", "look-ups", "lower"),
    *_both("record", must=1, aim=0.5),
    *_both("largest", must=1, aim=0.5),
    *_both("arrival"),
    *_both("earlier"),
    *_both("range"),
    *_both("cold"),
    Figure("cold requests", "a look-up", "lower", under=2.1),
    Figure("cold KiB", "a look-up", "lower"),
    *_both("narrow"),
    Figure("narrow requests", "a look-up", "lower", under=1.1),
    Figure("narrow KiB", "a look-up", "lower"),
)
CELLS = (
    Cell("tier-look-ups", FIGURES, measure, starts_nodes=True, most_rounds=1, fills_memory=True),
)
