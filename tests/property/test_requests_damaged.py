"""Valid requests of every API and version, damaged at random, against a whole broker.

Nothing but an answer, silence (acks=0) or a closed connection may come of it: an error that nobody
expected is a bug, and the broker counts those. The broker lives on a simulated disk, keeps what
earlier examples did to it, and must still serve at the end.
"""

import asyncio
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.daemon.routes import routes, served
from broker.runtime.connection_limits import CloseConnection
from broker.runtime.request_context import Peer
from broker.server.dispatcher import Dispatcher
from protocol.api import Api
from protocol.apis.metadata import MetadataRequest
from protocol.codec import encode_bytes
from protocol.headers import request_header_bytes
from tests.support.clients.damaged_requests import damaged, settle_in
from tests.support.clients.message_strategies import messages
from tests.support.clients.served_apis import served_apis
from tests.support.worlds.handler_world import World

PEER = Peer(1, "10.0.0.9", 50000, "PLAINTEXT", "127.0.0.1", 9092)
EXAMPLES = int(os.environ.get("HOROLOG_FUZZ_EXAMPLES", "4"))
ANSWER_SECONDS = 5


def every_version() -> list[Any]:
    return [
        pytest.param(api, version, id=f"{api.name}-{version}")
        for api in served_apis().values()
        for version in range(api.min_version, api.max_version + 1)
    ]


class Attacked:
    """A broker in this loop and the one entry for frames."""

    def __init__(self) -> None:
        self.world = World(horolog_max_partitions="200")
        self.broker = self.world.broker
        loop = asyncio.get_running_loop()
        self.dispatcher = Dispatcher(routes(served(), self.broker), self.broker.probes, loop)

    async def take(self, frame: bytes) -> None:
        """One frame, to the end of what becomes of it."""
        try:
            answer = self.dispatcher.dispatch(memoryview(bytearray(frame)), PEER)
        except CloseConnection:
            return
        if answer is None or isinstance(answer, list):
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answer.listen(lambda parts, error: done.done() or done.set_result(None))  # type: ignore[func-returns-value]
        for _ in range(100):
            if done.done():
                return
            self.world.commit.sync()
            await asyncio.sleep(0)
        answer.abandon()  # a fetch that waits for data

    async def check(self) -> None:
        assert not self.broker.probes.crashes, dict(self.broker.probes.crashes)
        assert (await self.world.call(MetadataRequest(topics=None), 9)).brokers


@pytest.mark.parametrize(("api", "version"), every_version())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_request_is_answered_or_ends_its_connection(
    api: Api, version: int, data: st.DataObject
) -> None:
    requests = [data.draw(messages(api.request, version)) for _ in range(3)]
    choice = data.draw(st.randoms(use_true_random=False))
    header = request_header_bytes(api, version, 5, "fuzz")

    async def attack() -> None:
        attacked = Attacked()
        await attacked.world.make_topic("t", 2)
        await attacked.world.make_topic("compacted", 1, cleanup_policy="compact")
        await attacked.world.produce(b"a", b"b")
        for request in requests:
            settle_in(request, choice, attacked.world.broker.topics)
            body = encode_bytes(request, version)
            await attacked.take(damaged(header + body, choice))
            await attacked.take(header + damaged(body, choice))
            await attacked.take(header + body)
        await attacked.check()

    asyncio.run(asyncio.wait_for(attack(), ANSWER_SECONDS * 10))
