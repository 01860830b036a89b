"""Connections that must not come in: some wait before they end."""

from typing import Any

from broker.server.turned_away import LONGEST_SECONDS, MOST_WAITING, TurnedAway

MANY_FILES = 1 << 20


class Transport:
    def __init__(self) -> None:
        self.aborted = self.paused = False

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        self.paused = True

    def is_closing(self) -> bool:
        return self.aborted


class Handle:
    def cancel(self) -> None:
        pass


class Loop:
    """Calls what it is given when the test says so."""

    def __init__(self) -> None:
        self.soon: list[Any] = []
        self.later: list[Any] = []

    def call_soon(self, callback: Any, *args: Any) -> None:
        self.soon.append((callback, args))

    def call_later(self, seconds: float, callback: Any, *args: Any) -> Any:
        self.later.append((seconds, callback, args))
        return Handle()

    def run(self, calls: list[Any]) -> None:
        for *_, callback, args in calls:
            callback(*args)
        calls.clear()


def turned_away(gate: Any, seconds: float) -> Transport:
    transport = Transport()
    gate.add(transport, seconds)
    return transport


def test_who_need_not_wait_ends_at_once() -> None:
    loop: Any = Loop()
    assert turned_away(TurnedAway(loop, MANY_FILES), 0).aborted
    assert not loop.later


def test_who_waits_is_not_read_from_and_then_ends() -> None:
    loop: Any = Loop()
    transport = turned_away(TurnedAway(loop, MANY_FILES), 0.5)
    loop.run(loop.soon)
    assert (transport.paused, transport.aborted) == (True, False)
    assert loop.later[0][0] == 0.5
    loop.run(loop.later)
    assert transport.aborted


def test_who_has_gone_meanwhile_is_left_alone() -> None:
    loop: Any = Loop()
    transport = turned_away(TurnedAway(loop, MANY_FILES), 0.5)
    transport.abort()
    loop.run(loop.soon)
    assert not transport.paused


def test_nobody_waits_for_very_long() -> None:
    loop: Any = Loop()
    turned_away(TurnedAway(loop, MANY_FILES), 86_400)
    assert loop.later[0][0] == LONGEST_SECONDS


def test_not_very_many_wait() -> None:
    loop: Any = Loop()
    gate = TurnedAway(loop, MANY_FILES)
    transports = [turned_away(gate, 1) for _ in range(MOST_WAITING + 3)]
    assert sum(each.aborted for each in transports) == 3
    loop.run(loop.later)
    assert not turned_away(gate, 1).aborted


def test_fewer_wait_where_files_are_few() -> None:
    loop: Any = Loop()
    gate = TurnedAway(loop, 100)
    transports = [turned_away(gate, 1) for _ in range(8)]
    assert sum(each.aborted for each in transports) == 3


def test_all_end_when_the_broker_stops() -> None:
    loop: Any = Loop()
    gate = TurnedAway(loop, MANY_FILES)
    transports = [turned_away(gate, 1) for _ in range(3)]
    gate.close()
    assert all(each.aborted for each in transports)
