"""The loop stays awake for clients in lockstep, and for nobody else."""

from collections import deque
from collections.abc import Callable

from broker.server.busy_poll import AWAKE_SECONDS, PAUSE_SECONDS, STREAK, Lockstep


class HeldLoop:
    """Keeps what is to be called; time passes by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: deque[Callable[[], None]] = deque()

    def monotonic(self) -> float:
        return self.now

    def call_soon(self, call: Callable[[], None]) -> None:
        self.calls.append(call)

    def turn(self, seconds: float) -> None:
        self.now += seconds
        for _ in range(len(self.calls)):
            self.calls.popleft()()


def in_lockstep(loop: HeldLoop, lockstep: Lockstep, requests: int, pause: float) -> None:
    for _ in range(requests):
        loop.now += pause
        lockstep.answered(loop.now)


def made() -> tuple[HeldLoop, Lockstep]:
    loop = HeldLoop()
    return loop, Lockstep(loop, loop.monotonic)  # type: ignore[arg-type]


def test_it_stays_awake_for_a_moment_after_many_requests_in_lockstep() -> None:
    loop, lockstep = made()
    in_lockstep(loop, lockstep, STREAK + 1, PAUSE_SECONDS / 2)
    assert len(loop.calls) == 1
    loop.turn(AWAKE_SECONDS / 2)
    assert len(loop.calls) == 1
    loop.turn(AWAKE_SECONDS)
    assert not loop.calls


def test_it_sleeps_while_requests_are_rare_or_few() -> None:
    loop, lockstep = made()
    in_lockstep(loop, lockstep, STREAK - 1, PAUSE_SECONDS / 2)
    in_lockstep(loop, lockstep, 10 * STREAK, PAUSE_SECONDS * 2)
    assert not loop.calls


def test_many_answers_keep_one_look_out() -> None:
    loop, lockstep = made()
    in_lockstep(loop, lockstep, 5 * STREAK, PAUSE_SECONDS / 4)
    assert len(loop.calls) == 1
    loop.turn(1.1 * AWAKE_SECONDS)
    in_lockstep(loop, lockstep, 1, PAUSE_SECONDS / 4)
    assert len(loop.calls) == 1
