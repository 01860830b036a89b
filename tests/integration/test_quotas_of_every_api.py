"""Every API in every version is answered while its client is above every quota there is.

Made from the routes: a response without room for a throttle time is one of them, whatever it is
called.
"""

import asyncio
from itertools import count
from typing import Any

import pytest

from broker.daemon.routes import routes, served
from broker.quotas.enforcement import Enforcement, Throttled
from broker.quotas.table import CLIENT_ID, KEYS, QuotaTable
from broker.runtime.connection_limits import CloseConnection
from broker.runtime.request_context import Peer
from broker.server.dispatcher import Dispatcher, Pending
from protocol.api import Api
from tests.support.clients.wire import parse_response, request_frame
from tests.support.worlds.handler_world import World

PEER = Peer(7, "10.0.0.9", 50000, "PLAINTEXT", "127.0.0.1", 9092)
WINDOW_MS = 1000


class Busy:
    """A dispatcher for which each look at the clock takes 10 ms, and who was muted."""

    def __init__(self, world: World, limits: dict[str, float]) -> None:
        ticks = count(1)
        world.broker.probes.monotonic = lambda: next(ticks) / 100
        self.muted: list[float] = []
        found = routes(served(), world.broker)
        self.dispatcher = Dispatcher(found, world.broker.probes, asyncio.get_running_loop())
        enforced = Enforcement(
            windows=2,
            burst_seconds=11,
            window_ms=WINDOW_MS,
            monotonic=world.broker.probes.monotonic,
            mute=lambda number, seconds: self.muted.append(seconds),
            throttled=Throttled(),
        )
        enforced.use(QuotaTable({((CLIENT_ID, None),): limits}))
        self.dispatcher.quotas = enforced

    async def answer(self, api: Api, version: int) -> Any:
        request = api.request()
        if api.key == 0:
            request.acks = 1
        frame = memoryview(bytearray(request_frame(request, version)[4:]))
        answered = self.dispatcher.dispatch(frame, PEER)
        if isinstance(answered, Pending):
            answered = await _settled(answered)
        assert answered is not None
        whole = b"".join(bytes(part) for part in answered)  # type: ignore[arg-type]
        return parse_response(api, version, whole[4:])[1]


async def _settled(pending: Pending) -> Any:
    found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def listen(parts: Any, refusal: CloseConnection | None) -> None:
        if refusal is None:
            found.set_result(parts)
        else:
            found.set_exception(refusal)

    pending.listen(listen)
    return await asyncio.wait_for(found, 10)


@pytest.mark.parametrize(
    "limits", [{key: 1e-6} for key in KEYS] + [dict.fromkeys(KEYS, 1e-6)], ids=[*KEYS, "all"]
)
@pytest.mark.parametrize("api", [each.api for each in served()], ids=lambda a: a.name)
async def test_who_is_above_a_quota_is_answered_by_every_api(
    api: Api, limits: dict[str, float]
) -> None:
    for version in range(api.min_version, api.max_version + 1):
        busy = Busy(World(), limits)
        response = await busy.answer(api, version)
        if "request_percentage" not in limits:
            continue
        assert busy.muted, "its time counts, whether or not its answer can say so"
        field = api.response.__fields__.get("throttle_time_ms")
        if field is not None and field.since <= version <= field.until:
            assert response.throttle_time_ms > 0
