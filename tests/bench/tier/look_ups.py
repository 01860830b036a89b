"""Look-ups by time that are timed and compared with all records: offsets, the latest, ranges."""

import json
import random
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from itertools import islice
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import urlencode

from protocol.errors import ErrorCode
from tests.bench.frames import LIST_OFFSETS_VERSION, offset_at
from tests.bench.lookup_cells import set_clock
from tests.bench.pump import percentile, refuse
from tests.bench.tier.bad_topic import TOPIC, times_to_ask
from tests.bench.tier.nodes import TieredNode
from tests.bench.wire import Wire, answer
from tests.support.tier_times.known_times import FoundRange, FoundRecord, KnownTimes

CLOCKS: Final = ("record", "arrival", "earlier")
MAX_TIMESTAMP = -3
LONGEST_RANGE_MS = 3_600_000
TIMEOUT_SECONDS = 60
MOST_UNANSWERED = 10
NO_ANSWER = FoundRecord(-2, -2)


class Wrong(NamedTuple):
    """An answer that is not that of the list."""

    asked: str
    expected: object
    found: object


class LookUps:
    """A client that asks one thing after the other, and keeps what it took and what was wrong."""

    def __init__(self, node: TieredNode, known: KnownTimes) -> None:
        """Connects."""
        self.known = known
        self.wrong: list[Wrong] = []
        self.count = self.unanswered = 0
        """Look-ups; those that a peer gave up, which are wrong, too."""
        self._node = node
        self._clock = ""
        self._wire = Wire(node.bootstrap)
        self._http = (
            HTTPConnection(node.process.facts["http"], timeout=TIMEOUT_SECONDS)
            if node.is_ours
            else None
        )
        self._offset_at = offset_at(TOPIC)

    @property
    def has_clocks(self) -> bool:
        """True of our own broker, which has three, and ranges."""
        return self._node.is_ours

    def by_clock(self, clock: str) -> None:
        """Has the broker search by this clock; Kafka has the first only."""
        self._clock = clock
        if self._node.is_ours:
            set_clock(self._wire, TOPIC, clock)

    def first(self, timestamp: int) -> int:
        """The first record at a time or later; nanoseconds that the answer took."""
        took, found = self._list_offsets(timestamp)
        expected = self.known.first(self._clock, timestamp)
        self._compare(f"first by {self._clock} at {timestamp}", expected, found)
        return took

    def largest(self) -> int:
        """The first record with the largest time, as `first`."""
        took, found = self._list_offsets(MAX_TIMESTAMP)
        self._compare("largest time", self.known.largest(), found)
        return took

    def between(self, clock: str, from_ms: int, to_ms: int) -> int:
        """All records from one time to before another, as `first`; of ours alone."""
        assert self._http is not None
        asked = urlencode({"from": from_ms, "to": to_ms, "clock": clock, "partition": 0})
        began = time.perf_counter_ns()
        self._http.request("GET", f"/api/topics/{TOPIC}/time/range?{asked}")
        content = self._http.getresponse().read()
        took = time.perf_counter_ns() - began
        told = json.loads(content)["partitions"][0]
        found = FoundRange(told["records"], told["first_offset"], told["last_offset"])
        expected = self.known.between(clock, from_ms, to_ms)
        is_exact = told["is_exact"] and told["is_empty"] == (not expected.records)
        self._compare(f"between by {clock}: {asked}", (expected, True), (found, is_exact))
        return took

    def _list_offsets(self, timestamp: int) -> tuple[int, FoundRecord]:
        request = self._offset_at.with_number(timestamp)
        began = time.perf_counter_ns()
        self._wire.send(request)
        received = self._wire.receive_alone()
        took = time.perf_counter_ns() - began
        found = answer("ListOffsets", LIST_OFFSETS_VERSION, received).topics[0].partitions[0]
        if self._is_given_up(found.error_code):
            return took, NO_ANSWER
        refuse(found.error_code)
        return took, FoundRecord(found.offset, found.timestamp)

    def _is_given_up(self, code: int) -> bool:
        """True for one of a few look-ups of which Kafka says, after 30 s, that it has no answer."""
        is_one = code == ErrorCode.REQUEST_TIMED_OUT and not self._node.is_ours
        self.unanswered += is_one
        return is_one and self.unanswered <= MOST_UNANSWERED

    def _compare(self, asked: str, expected: object, found: object) -> None:
        self.count += 1
        if expected != found:
            self.wrong.append(Wrong(asked, expected, found))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wire.__exit__(kind, error, trace)
        if self._http is not None:
            self._http.close()


def ask_all(asks: LookUps, count: int, seed: int) -> Mapping[str, list[int]]:
    """About `count` look-ups of each kind that the broker has; ns of each, by kind.

    A tenth are ranges, a twentieth are for the largest time.
    """
    took: dict[str, list[int]] = {}
    for clock in CLOCKS if asks.has_clocks else CLOCKS[:1]:
        asks.by_clock(clock)
        times = islice(times_to_ask(asks.known, clock, seed), int(count * 0.28))
        took[clock] = [asks.first(each) for each in times]
    took["largest"] = [asks.largest() for _ in range(count // 20)]
    if asks.has_clocks:
        asked = islice(ranges_to_ask(asks.known, seed), count // 10)
        took["range"] = [asks.between(*each) for each in asked]
    return took


def ranges_to_ask(known: KnownTimes, seed: int) -> Iterator[tuple[str, int, int]]:
    """Endless: clock, and both ends."""
    dice = random.Random(seed)
    while True:
        clock = dice.choice(CLOCKS)
        begin = next(times_to_ask(known, clock, dice.randrange(2**32)))
        yield clock, begin, begin + dice.choice((0, 1, 1000, dice.randint(1, LONGEST_RANGE_MS)))


def percentiles(took: Mapping[str, list[int]], kind: str) -> dict[str, float]:
    """p50 and p99 in ms of one kind."""
    return {f"{kind} p{p}": percentile(took[kind], p) / 1e6 for p in (50, 99)}
