"""Points at which a life of `tier_story` goes wrong: one call of each kind, in each way."""

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.tier.fault_proxy import Around
from tests.support.tier.fault_ways import Way, is_possible
from tests.support.tier.s3_calls import Asked, Call
from tests.support.tier.s3_server import S3Server
from tests.support.tier.tier_story import FaultedBroker, TierStory, faulted_broker

KEPT = (
    "put_new manifest", "put_file records", "put_file side", "get_range records", "get_range side",
    "list manifest", "list all", "delete records", "put_new compacted manifest",
    "put_file compacted records",
)  # fmt: skip
"""Steps of which the second call is another matter than the first."""
CHANGES = ("put_", "begin_upload", "end_upload", "abort_upload", "delete")
"""Beginnings of steps that change the store."""
LATEST_SECONDS = 20


class Fault(NamedTuple):
    """One call that goes wrong."""

    call: Call
    way: Way


class Kill(NamedTuple):
    """kill -9 of the broker at one call."""

    call: Call
    is_after: bool
    """The store has done it, the broker never hears of it; else the store has not seen it."""


class Late(NamedTuple):
    """kill -9 of the broker at one call, which the store does once the next process has looked."""

    call: Call


Point = Fault | Kill | Late


class Lived(NamedTuple):
    """Result of a life."""

    seconds: float
    played: int
    """Faults, or kills, that came."""
    failures: float
    """Failures counted by the broker since its last start."""


def calls_of_a_life(server: S3Server, data_dir: Path) -> Sequence[Call]:
    """All calls of one without faults."""
    with faulted_broker(server, data_dir) as broker:
        TierStory(broker).live()
        return list(broker.proxy.calls)


def all_points(calls: Sequence[Call]) -> list[Point]:
    """All that a life may meet, in an order that does not depend on that of its threads."""
    calls = sorted(set(calls))
    return [*all_faults(calls), *all_kills(calls), *all_late(calls)]


def all_faults(calls: Sequence[Call]) -> list[Fault]:
    """Each kind of call, its first one, in each way; of some the second one, too."""
    return [
        Fault(call, way)
        for call in calls
        if call.nth == 1 or (call.nth == 2 and call.step in KEPT)
        for way in Way
        if is_possible(way, call.step)
    ]


def all_kills(calls: Sequence[Call]) -> list[Kill]:
    """Before and after each call, of each kind the first few."""
    return [Kill(call, is_after) for call in calls if call.nth <= 4 for is_after in (False, True)]


def all_late(calls: Sequence[Call]) -> list[Late]:
    """Each kind of call that changes the store, the first few."""
    return [Late(call) for call in calls if call.nth <= 3 and call.step.startswith(CHANGES)]


def live_with(server: S3Server, data_dir: Path, point: Point) -> Lived:
    """A life that meets one point. AssertionError for a broken promise."""
    match point:
        case Fault():
            return live_with_faults(server, data_dir, [point])
        case Kill():
            return live_with_kills(server, data_dir, [point])
        case Late():
            return live_with_a_late_call(server, data_dir, point)


def live_with_faults(server: S3Server, data_dir: Path, faults: Sequence[Fault]) -> Lived:
    """A life in which these calls go wrong. AssertionError for a broken promise."""
    ways: Mapping[Call, Way] = {each.call: each.way for each in faults}
    began = time.monotonic()
    with faulted_broker(server, data_dir) as broker:
        broker.proxy.fail(ways.get)
        TierStory(broker).live()
        played = len(broker.proxy.happened)
        return Lived(time.monotonic() - began, played, broker.failures)


def live_with_kills(server: S3Server, data_dir: Path, kills: Sequence[Kill]) -> Lived:
    """The same with a broker that is killed at these calls, and started again."""
    began = time.monotonic()
    with faulted_broker(server, data_dir) as broker:
        killer = _Killer(broker, kills)
        broker.proxy.around = Around(killer.before, killer.after)
        TierStory(broker).live()
        killer.end()
        assert broker.starts == 1 + killer.killed
        return Lived(time.monotonic() - began, killer.killed, broker.failures)


def live_with_a_late_call(server: S3Server, data_dir: Path, late: Late) -> Lived:
    """The same with a broker that is killed at a call which the store does later."""
    began = time.monotonic()
    with faulted_broker(server, data_dir) as broker:
        courier = _Courier(broker, late)
        broker.proxy.around = Around(courier.before, courier.after)
        TierStory(broker).live()
        return Lived(time.monotonic() - began, courier.was_late, broker.failures)


class _Killer:
    def __init__(self, broker: FaultedBroker, kills: Sequence[Kill]) -> None:
        self._broker = broker
        self._left = set(kills)
        self._gate = threading.Lock()
        self.killed = 0

    def before(self, asked: Asked) -> bool:
        return self._kill(Kill(asked.call, is_after=False))

    def after(self, asked: Asked) -> bool:
        return self._kill(Kill(asked.call, is_after=True))

    def end(self) -> None:
        """Nothing is killed any more; what is being killed runs again."""
        with self._gate:
            self._left.clear()

    def _kill(self, kill: Kill) -> bool:
        with self._gate:
            if kill not in self._left:
                return False
            self._left.discard(kill)
            self._broker.kill_and_start()
            self.killed += 1
            return True


class _Courier:
    """Keeps one call until the next process has a list of what is there, and that list as well.

    So the store does the call before that process acts by the list. Calls of no topic, and
    removals, are kept until any list.
    """

    def __init__(self, broker: FaultedBroker, late: Late) -> None:
        self._broker = broker
        self._late = late
        self._topic: str | None = None
        """Of the call that is kept."""
        self._was_listed, self._is_done = threading.Event(), threading.Event()
        self.was_late = False

    def before(self, asked: Asked) -> bool:
        if asked.call == self._late.call and self._topic is None:
            self._topic = asked.topic
            self._broker.kill_and_start()
            self.was_late = self._was_listed.wait(LATEST_SECONDS)
        return False

    def after(self, asked: Asked) -> bool:
        if asked.call == self._late.call:
            self._is_done.set()
        elif self._is_awaited(asked) and not self._was_listed.is_set():
            self._was_listed.set()
            self._is_done.wait(LATEST_SECONDS)
        return False

    def _is_awaited(self, asked: Asked) -> bool:
        operation, _, kind = asked.call.step.partition(" ")
        if operation != "list" or self._topic is None or self._broker.starts < 2:
            return False
        if self._topic:
            return asked.topic == self._topic
        return kind == "picture" or not self._late.call.step.endswith("picture")
