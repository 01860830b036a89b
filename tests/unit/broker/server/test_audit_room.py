"""A change waits for room in the audit before it is made, and is not made if its client goes."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.daemon.routes import served
from broker.runtime.deferred import Deferred, resolved
from broker.runtime.gathering import wait_for
from broker.runtime.principals import ANONYMOUS
from broker.security.audit import queue
from broker.security.audit.lines import AdminChange, Who
from broker.security.audit.sinks import AuditSink
from broker.security.audit.trail import AuditTrail
from broker.server.admin_actions import watched
from broker.server.route import Route
from protocol.apis.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from tests.support.worlds.handler_world import InlineLanes

CONTEXT: Any = SimpleNamespace(
    client_id="me", client_host="10.0.0.1", listener_name="X", principal=ANONYMOUS
)


class Sink:
    """Takes lines while it works."""

    name = "file"

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.works = True

    def write(self, lines: list[str]) -> int:
        self.lines += lines if self.works else []
        return len(lines) if self.works else 0


class World:
    """A full trail, and an administrator's API that is watched."""

    def __init__(self, how: str) -> None:
        self.made: list[object] = []
        self.lanes, self.sink = InlineLanes(), Sink()
        self.lanes.held = True
        self.trail = AuditTrail(lambda: 1.0, lambda: 1_790_000_000_000, cast("Any", self.lanes))
        self.trail.use(cast("AuditSink", self.sink))
        for number in range(5):
            self.trail.noted(Who("", "", "", ""), AdminChange("make", f"{number}", ""))
        (api,) = (each.api for each in served() if each.api.name == "DeleteGroups")
        routes = watched({api.key: Route(api, getattr(self, how), None)}, self.trail)
        self.handle: Callable[[object, Any], Any] = routes[api.key].handle

    def at_once(self, request: object, _: object) -> Any:
        self.made.append(request)
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g")])

    def deferred(self, request: object, context: object) -> Any:
        return resolved(self.at_once(request, context))

    async def awaited(self, request: object, context: object) -> Any:
        return self.at_once(request, context)

    async def very_many(self, *_: object) -> Any:
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g")] * 2000)

    async def write(self) -> None:
        """The lane works again."""
        self.lanes.held = False
        while self.lanes.waiting:
            self.lanes.release()
        await self.trail.queue.drain()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MAX_LINES", 3)
    monkeypatch.setattr(queue, "LINES_A_WRITE", 2)


@pytest.mark.parametrize("how", ["at_once", "deferred", "awaited"])
async def test_nothing_is_made_before_there_is_room(how: str) -> None:
    world = World(how)
    answer = world.handle("change", CONTEXT)
    assert isinstance(answer, Deferred)
    await asyncio.sleep(0)
    assert world.made == []
    await world.write()
    assert (await wait_for(answer)).results[0].group_id == "g"
    assert world.made == ["change"]
    await world.write()
    assert '"delete group"' in world.sink.lines[-1]


async def test_a_client_that_goes_before_there_is_room_changes_nothing() -> None:
    world = World("at_once")
    for _ in range(1000):
        world.handle("change", CONTEXT).abandon()
    assert world.trail.queue.waiting == 0
    await world.write()
    assert world.made == []


async def test_those_that_wait_are_let_in_only_as_far_as_there_is_room() -> None:
    world = World("at_once")
    answers = [world.handle(number, CONTEXT) for number in range(9)]
    for _ in range(2):
        world.lanes.release()
        await asyncio.sleep(0)
    assert world.made == [0, 1]
    assert world.trail.queue.length == 4
    await world.write()
    for each in answers:
        await wait_for(each)
    assert world.made == list(range(9))


async def test_traces_of_very_many_give_way_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MAX_LINES", 10_000)
    world = World("very_many")
    answered = asyncio.ensure_future(world.handle("change", CONTEXT))
    turns = 0
    while not answered.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 40
    assert world.trail.changes == 5 + 2000
