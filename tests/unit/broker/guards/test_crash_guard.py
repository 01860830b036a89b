"""Which starts make a loop of crashes, and how its hold ends."""

import pytest

from broker.guards.admission import Intake
from broker.guards.crash_guard import FILE_NAME, CrashGuard
from broker.guards.disk_space import DiskSpace
from config.broker import BrokerConfig
from protocol.errors import ErrorCode, KafkaError
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock, sim_env

LIMIT, WINDOW_MS, HOLD_MS = 3, 3_600_000, 600_000


class Machine:
    """A data directory whose broker is killed and started again."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.clock = SimClock()
        self.fs = SimFileSystem(clock=self.clock)
        self.fs.make_dir("/data")
        self.fs.sync_dir("/")
        self.config = BrokerConfig(
            horolog_crash_loop_starts=limit,
            horolog_crash_loop_window_ms=WINDOW_MS,
            horolog_crash_loop_hold_ms=HOLD_MS,
        )

    def start(self, *, was_clean: bool = False) -> CrashGuard:
        env = sim_env(fs=self.fs, clock=self.clock)
        guard = CrashGuard(env, "/data", lambda: self.config)
        guard.started(was_clean=was_clean)
        return guard

    def crash(self, times: int, *, apart_ms: int = 1000) -> None:
        for _ in range(times):
            self.start()
            self.fs = self.fs.after_crash(1)
            self.clock.advance(apart_ms)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_so_many_crashes_hold_the_next_start_and_time_frees_it(machine: Machine) -> None:
    machine.crash(LIMIT - 1)
    held = [machine.start().is_holding]
    machine.clock.advance(1000)
    guard = machine.start()
    held.append(guard.is_holding)
    assert held == [False, True]
    assert guard.recent_starts == LIMIT
    with pytest.raises(KafkaError, match="3 times soon after its start") as refused:
        guard.check()
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    machine.clock.advance(HOLD_MS)
    guard.check()
    assert guard.fault is None


def test_an_operator_ends_it_at_once(machine: Machine) -> None:
    machine.crash(LIMIT)
    guard = machine.start()
    assert guard.confirm()
    guard.check()
    assert not guard.confirm()


def test_a_start_that_says_what_to_do_is_no_crash(machine: Machine) -> None:
    machine.crash(LIMIT - 1)
    for _ in range(LIMIT):
        machine.start().refused()
    assert not machine.start().is_holding
    assert machine.start().is_holding, "the crashes before still count"


def test_who_does_not_ask_for_the_guard_has_no_file_of_it() -> None:
    machine = Machine(limit=0)
    guard = machine.start()
    machine.clock.advance(61_000)
    guard.look()
    guard.refused()
    guard.stopped()
    assert not machine.fs.exists(f"/data/{FILE_NAME}")


def test_who_lives_for_a_while_was_in_no_loop(machine: Machine) -> None:
    for _ in range(3 * LIMIT):
        guard = machine.start()
        machine.clock.advance(61_000)
        guard.look()
        machine.fs = machine.fs.after_crash(1)
    assert not machine.start().is_holding


def test_a_good_stop_forgets_them(machine: Machine) -> None:
    machine.crash(LIMIT)
    machine.start().stopped()
    assert not machine.start().is_holding
    machine.crash(LIMIT)
    assert not machine.start(was_clean=True).is_holding


def test_old_ones_and_those_of_a_wrong_clock_do_not_count(machine: Machine) -> None:
    machine.crash(LIMIT)
    machine.clock.step(WINDOW_MS)
    assert not machine.start().is_holding
    machine.crash(LIMIT)
    machine.clock.step(-86_400_000)
    assert not machine.start().is_holding


def test_it_can_be_switched_off() -> None:
    machine = Machine(limit=0)
    machine.crash(20)
    assert not machine.start().is_holding
    assert not machine.fs.exists(f"/data/{FILE_NAME}")


@pytest.mark.parametrize("text", [b"", b"0\n", b"\xff", b"0\n1\nx\n", b"0\n1\n-4\n"])
def test_a_file_that_cannot_be_read_keeps_nobody_from_starting(
    machine: Machine, text: bytes
) -> None:
    machine.fs.write_atomically(f"/data/{FILE_NAME}", text)
    assert not machine.start().is_holding


def test_nor_does_a_full_disk(machine: Machine) -> None:
    machine.fs.capacity_bytes = 0
    assert not machine.start().is_holding


def test_batches_are_asked_about_only_while_something_is_amiss(machine: Machine) -> None:
    machine.crash(LIMIT)
    guard = machine.start()
    space = DiskSpace(machine.fs, "/", lambda: machine.config)
    space.look()
    intake = Intake(space, guard)
    intake.look()
    guarded = [intake.is_guarded]
    with pytest.raises(KafkaError):
        intake.admit(10)
    guard.confirm()
    intake.admit(10)
    intake.look()
    assert [*guarded, intake.is_guarded] == [True, False]
