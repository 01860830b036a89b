"""The security audit: one line a change, sums of what is refused, and a way that loses nothing."""

import asyncio
import json
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.runtime.principals import Principal
from broker.security.audit import queue, sinks
from broker.security.audit.lines import AdminChange, AuditLine, Who
from broker.security.audit.sums import MAX_KINDS, MAX_OF_A_CLIENT, OTHERS, SECONDS, AuditSums
from broker.security.audit.trail import AuditTrail, Denial
from config.errors import ConfigError
from protocol.acls import AclOperation, ResourceType
from tests.support.worlds.handler_world import InlineLanes

ALICE = Who("app", "10.0.0.1", "CLIENT", "User:alice")
ASKER: Any = SimpleNamespace(client_id="app", listener_name="CLIENT", api_key=0)


class Sink:
    """Takes lines while it works."""

    name = "file"

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.works = True

    def write(self, lines: Sequence[str]) -> int:
        if not self.works:
            return 0
        self.lines += [json.loads(each) for each in lines]
        return len(lines)


class World:
    """A trail with a sink, a clock and lanes of the test's own."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.lanes = InlineLanes()
        self.trail = AuditTrail(
            lambda: self.seconds, lambda: 1_790_000_000_000, cast("Any", self.lanes)
        )
        self.sink = Sink()
        self.trail.use(self.sink)

    async def lines(self) -> list[dict[str, Any]]:
        """What was written so far."""
        await self.trail.queue.drain()
        return self.sink.lines

    def deny(self, name: str = "t", host: str = "10.0.0.1", rule: str = "no ACL allows it") -> None:
        denial = Denial(Principal("User", "bob"), host, AclOperation.READ, ResourceType.TOPIC, name)
        self.trail.denied(denial, ASKER, lambda: rule)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines in standard error."""
    written: list[str] = []

    def write(self: object, lines: Sequence[str]) -> int:
        written.extend(lines)
        return len(lines)

    monkeypatch.setattr(sinks.StandardError, "write", write)
    return written


async def test_a_line_has_every_field() -> None:
    world = World()
    world.trail.noted(ALICE, AdminChange("create topic", "t", "partitions=1"), "CreateTopics")
    world.deny()
    first, second = await world.lines()
    assert first == {
        "v": 1, "at": "2026-09-21T14:13:20.000Z", "event": "admin_change",
        "principal": "User:alice", "host": "10.0.0.1", "client_id": "app", "listener": "CLIENT",
        "api": "CreateTopics", "operation": "create topic", "resource": "t", "outcome": "done",
        "rule": "", "detail": "partitions=1", "count": 1,
    }  # fmt: skip
    assert (second["event"], second["principal"], second["api"]) == (
        "denied", "User:bob", "Produce"
    )  # fmt: skip
    assert (second["operation"], second["resource"]) == ("READ", "topic t")
    assert second["rule"] == "no ACL allows it"


async def test_changes_are_one_line_each_and_refusals_are_added_up() -> None:
    world = World()
    for number in range(2000):
        world.trail.noted(ALICE, AdminChange("delete topic", f"t{number}", ""))
        world.trail.noted(ALICE, AdminChange("delete topic", "t", "", 42, "no"))
        world.trail.noted(ALICE, AdminChange("delete topic", "t", "", 29))
    lines = await world.lines()
    assert Counter(each["outcome"] for each in lines) == {"done": 2000, "refused 42": 1}
    world.seconds += SECONDS
    world.trail.flush()
    last = (await world.lines())[-1]
    assert (last["outcome"], last["count"], last["detail"]) == ("refused 42", 1999, "no")
    assert world.trail.changes == 6000


async def test_denials_are_told_at_once_and_then_by_the_minute() -> None:
    world = World()
    for _ in range(1000):
        world.deny()
    assert len(await world.lines()) == 1
    world.seconds += SECONDS - 1
    world.trail.flush()
    assert len(await world.lines()) == 1
    world.seconds += 1
    world.trail.flush()
    assert (await world.lines())[-1]["count"] == 999
    world.deny()
    assert (await world.lines())[-1]["count"] == 1
    assert world.trail.denials == {("read", "topic"): 1001}


async def test_who_tries_many_names_fills_neither_memory_nor_the_file() -> None:
    world = World()
    for number in range(10_000):
        world.deny(f"t{number}", "10.0.0.9")
    world.deny("other", "10.0.0.1")
    lines = await world.lines()
    assert len(lines) == MAX_OF_A_CLIENT + 2
    assert lines[-2]["resource"] == OTHERS
    assert lines[-1]["resource"] == "topic other", "others are told as before"
    for number in range(10_000):
        world.deny("t", f"10.1.{number // 250}.{number % 250}")
    await world.trail.close()
    lines = world.sink.lines
    assert len(lines) < 2 * MAX_KINDS + 20
    assert sum(each["count"] for each in lines) == 20_001


async def test_the_sum_has_the_last_detail() -> None:
    now = [0.0]
    sums = AuditSums(lambda: now[0])
    for offset in (1, 2, 3):
        change = AuditLine("admin_change", ALICE, "", "set offset", "g t-0", "done")
        sums.begun(replace(change, detail=f"{offset}"))
    (due,) = sums.due(at_once=True)
    assert (due.count, due.detail) == (2, "3")


async def test_an_answer_waits_while_the_queue_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MAX_LINES", 3)
    world = World()
    world.lanes.held = True
    for number in range(3):
        world.trail.noted(ALICE, AdminChange("create topic", f"t{number}", ""))
    assert world.trail.room() is None
    world.trail.noted(ALICE, AdminChange("create topic", "t3", ""))
    room = world.trail.room()
    assert room is not None
    assert not room.settled
    world.deny()
    assert world.trail.queue.length == 4, "sums do not make it longer"
    world.lanes.release()
    await asyncio.sleep(0)
    assert room.settled
    assert world.trail.room() is None
    world.lanes.held = False
    while world.lanes.waiting:
        world.lanes.release()
    await world.trail.close()
    assert [each["resource"] for each in world.sink.lines] == ["t0", "t1", "t2", "t3", "topic t"]


async def test_what_the_file_does_not_take_is_in_the_log_and_the_file_says_so(
    log: list[str],
) -> None:
    world = World()
    world.trail.noted(ALICE, AdminChange("create topic", "a", ""))
    await world.lines()
    world.sink.works = False
    for name in "bcd":
        world.trail.noted(ALICE, AdminChange("create topic", name, ""))
        await world.lines()
    assert [json.loads(each)["resource"] for each in log] == ["b", "c", "d"]
    assert world.trail.missing == 3
    assert not world.trail.is_lost
    world.sink.works = True
    world.trail.noted(ALICE, AdminChange("create topic", "e", ""))
    lines = await world.lines()
    assert [each["resource"] for each in lines] == ["a", "e", "lines"]
    assert (lines[-1]["event"], lines[-1]["count"]) == ("audit_gap", 3)
    assert world.trail.missing == 0
    assert world.trail.queue.written == {"file": 3, "standard error": 3}


async def test_nothing_is_dropped_while_nothing_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks.StandardError, "write", lambda *_: 0)
    world = World()
    world.sink.works = False
    world.trail.noted(ALICE, AdminChange("create topic", "a", ""))
    assert await world.lines() == []
    assert world.trail.is_lost
    world.sink.works = True
    world.trail.flush()
    assert [each["resource"] for each in await world.lines()] == ["a"]
    assert not world.trail.is_lost


def test_the_file_is_its_owners_and_is_rotated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "MAX_BYTES", 100)
    path = tmp_path / "audit.jsonl"
    path.write_text("cut by a full di")
    path.chmod(0o644)
    file = sinks.AuditFile(str(path))
    assert file.write(["x" * 40] * 50) == 50
    file.close()
    found = sorted(tmp_path.iterdir())
    assert len(found) == 1 + sinks.MAX_FILES
    assert {stat.S_IMODE(each.stat().st_mode) for each in found} == {0o600}
    assert all(each.stat().st_size <= 100 for each in found)


def test_a_line_that_was_cut_does_not_spoil_the_next(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text('{"cut by a full di')
    file = sinks.AuditFile(str(path))
    assert file.write(["{}"]) == 1
    file.close()
    assert path.read_text().splitlines() == ['{"cut by a full di', "{}"]


def test_a_full_disk_is_told_by_the_number_of_lines() -> None:
    assert sinks.AuditFile("/dev/full").write(["a", "b"]) == 0


def test_a_file_that_cannot_be_written_refuses_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"horolog\.security\.audit\.file: .*none/audit"):
        sinks.AuditFile(str(tmp_path / "none" / "audit"))
