"""Other nodes of a fleet as they are asked: what is known of a request that has no answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker.access.settings import IN_THE_CLEAR
from broker.fleet.peers import peers as module
from broker.fleet.peers.peers import PeerAccess, Peers, PeerSilent, PeerUnreached
from broker.runtime.endpoint import Endpoint
from protocol.apis import api_versions, find_coordinator
from protocol.codec import encode_bytes
from protocol.headers import API_VERSIONS_KEY, parse_request_header, versions_of

APIS = (api_versions.API, find_coordinator.API)
LISTENER, NODE = "PLAINTEXT", 2
REQUEST = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])


class FakeNode:
    """A node that answers, or does what a test says."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.is_asked, self.waits = asyncio.Event(), asyncio.Event()
        self.way = "answers"
        self.apis = APIS

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = memoryview(await reader.readexactly(size))
                answer = await self._answer(frame)
                if answer is None:
                    break
                writer.write(len(answer).to_bytes(4, "big") + answer)
        except (EOFError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, frame: memoryview) -> bytes | None:
        header = parse_request_header(frame, versions_of(APIS))
        number = header.correlation_id.to_bytes(4, "big")
        if header.api_key == API_VERSIONS_KEY:
            keys = [
                api_versions.ApiVersion(
                    api_key=each.key, min_version=each.min_version, max_version=each.max_version
                )
                for each in self.apis
            ]
            body: Any = api_versions.ApiVersionsResponse(api_keys=keys)
            return number + encode_bytes(body, header.api_version)
        if self.way == "hangs up":
            return None
        if self.way == "is silent":
            self.is_asked.set()
            await self.waits.wait()
        if self.way == "answers another":
            number = (header.correlation_id + 1).to_bytes(4, "big")
        found = find_coordinator.Coordinator(key="g", node_id=7, host="h", port=1, error_message="")
        body = find_coordinator.FindCoordinatorResponse(coordinators=[found])
        return number + b"\0" + encode_bytes(body, header.api_version)


@asynccontextmanager
async def running() -> AsyncIterator[tuple[FakeNode, Peers]]:
    node = FakeNode()
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
    node.port = server.sockets[0].getsockname()[1]
    peers = Peers(PeerAccess(LISTENER, IN_THE_CLEAR, blocking, asyncio.get_running_loop().time))
    peers.nodes_are({NODE: {LISTENER: Endpoint("127.0.0.1", node.port)}})
    try:
        yield node, peers
    finally:
        peers.close()
        node.waits.set()
        server.close()


async def blocking(work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(work)


async def test_requests_share_a_connection_and_each_has_its_answer() -> None:
    async with running() as (node, peers):
        answers = await asyncio.gather(*(peers.ask(NODE, REQUEST) for _ in range(20)))
        assert [each.coordinators[0].node_id for each in answers] == [7] * 20
        assert node.connections == 1


@pytest.mark.parametrize("way", ["hangs up", "answers another"])
async def test_a_connection_that_ends_leaves_it_open_what_was_done(way: str) -> None:
    async with running() as (node, peers):
        node.way = way
        with pytest.raises(PeerSilent):
            await peers.ask(NODE, REQUEST)
        node.way = "answers"
        assert (await peers.ask(NODE, REQUEST)).coordinators
        assert node.connections == 2


async def test_who_waits_for_a_silent_node_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.2)
    async with running() as (node, peers):
        node.way = "is silent"
        with pytest.raises(PeerSilent):
            await peers.ask(NODE, REQUEST)


async def test_who_waits_for_a_node_that_has_gone_hears_at_once() -> None:
    async with running() as (node, peers):
        node.way = "is silent"
        waiting = asyncio.ensure_future(peers.ask(NODE, REQUEST))
        await node.is_asked.wait()
        peers.nodes_are({})
        with pytest.raises(PeerSilent):
            async with asyncio.timeout(2):
                await waiting
        with pytest.raises(PeerUnreached):
            await peers.ask(NODE, REQUEST)


async def test_what_was_not_sent_is_known_to_be_undone() -> None:
    async with running() as (node, peers):
        node.apis = (api_versions.API,)
        with pytest.raises(PeerUnreached, match="FindCoordinator"):
            await peers.ask(NODE, REQUEST)
        with pytest.raises(PeerUnreached, match="is gone"):
            await peers.ask(NODE + 1, REQUEST)
        peers.nodes_are({NODE + 1: {LISTENER: Endpoint("127.0.0.1", 1)}})
        with pytest.raises(PeerUnreached, match=r"127\.0\.0\.1:1"):
            await peers.ask(NODE + 1, REQUEST)
