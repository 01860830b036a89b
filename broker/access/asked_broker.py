"""A broker asked from an event loop: typed requests, several under way on one connection.

Answers come in the order of the requests, and the newest version that both sides have is spoken.
A connection ends at its first fault: whoever still waits for an answer does not know whether the
request was carried out.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, NamedTuple, TypeVar

from broker.access.errors import AccessError, BrokerNotProven
from broker.access.login import log_in
from broker.access.settings import ClientSecurity
from broker.access.tls import tls_context
from config.security.protocols import TLS
from protocol.api import Api
from protocol.apis import api_versions
from protocol.codec import decode, encode_bytes
from protocol.errors import DecodeError
from protocol.frames import MAX_FRAME_BYTES
from protocol.headers import API_VERSIONS_KEY, request_header_bytes
from protocol.registry import api_of

T = TypeVar("T")

Blocking = Callable[[Callable[[], T]], Awaitable[T]]
"""Runs a call that blocks on a thread."""
_VERSIONS_VERSION = 3


class NotAnswered(Exception):  # noqa: N818 - what is known
    """The connection ended before the answer: the request was carried out, or was not."""


class BrokerLacksApi(AccessError):  # noqa: N818 - an error is named after what happened
    """The broker serves no version of an API that is known here."""


class _AskedOf(NamedTuple):
    api: Api
    version: int
    number: int
    answer: "asyncio.Future[Any]"


class AskedBroker:
    """One connection. Used from the event loop."""

    def __init__(self, client_id: str, security: ClientSecurity, monotonic: Callable[[], float]):
        """Connected to nobody."""
        self._client_id = client_id
        self._security = security
        self._monotonic = monotonic
        self._numbers = count(1)
        self._waiting: deque[_AskedOf] = deque()
        self._versions: dict[int, tuple[int, int]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self.ends_at: float | None = None
        """Monotonic seconds at which its session ends; None: never."""

    @property
    def is_open(self) -> bool:
        """True while requests are sent."""
        return self._writer is not None

    async def open(self, host: str, port: int, blocking: Blocking[Any]) -> None:
        """Connects and logs in. OSError, AccessError, DecodeError, NotAnswered."""
        security = self._security
        context = None
        if security.protocol in TLS:
            context = await blocking(lambda: tls_context(security.settings))
        try:
            reader, self._writer = await asyncio.open_connection(
                host, port, ssl=context, server_hostname=host if context else None
            )
        except asyncio.IncompleteReadError as error:
            raise BrokerNotProven(f"no TLS with {host}:{port}") from error
        self._reading = asyncio.create_task(self._read(reader))
        try:
            await self._learn_versions()
            if security.mechanism:
                await self._log_in(blocking)
        except BaseException:
            self.close()
            raise

    def ask(self, request: Any) -> "asyncio.Future[Any]":
        """The answer, when it comes. BrokerLacksApi; fails with NotAnswered."""
        api = api_of(type(request))
        least, most = self._versions.get(api.key, (0, -1))
        version = min(api.max_version, most)
        if version < max(api.min_version, least):
            raise BrokerLacksApi(f"it has no {api.name} that is known here")
        return self._sent(api, request, version)

    def close(self) -> None:
        """Nobody hears of an answer any more."""
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            if not each.answer.done():
                each.answer.set_exception(NotAnswered(f"no answer to {each.api.name}"))

    async def _learn_versions(self) -> None:
        asked = api_versions.ApiVersionsRequest(
            client_software_name=self._client_id, client_software_version="1"
        )
        answer = await self._sent(api_versions.API, asked, _VERSIONS_VERSION)
        self._versions = {
            each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
        }

    async def _log_in(self, blocking: Blocking[Any]) -> None:
        """On a thread, since log-ins compute; their requests go by the loop."""
        loop = asyncio.get_running_loop()

        async def answered(request: Any) -> Any:
            return await self.ask(request)

        def ask(request: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(answered(request), loop).result()

        lifetime_ms = await blocking(lambda: log_in(ask, self._security))
        if lifetime_ms:
            self.ends_at = self._monotonic() + lifetime_ms / 1000

    def _sent(self, api: Api, request: Any, version: int) -> "asyncio.Future[Any]":
        answer = asyncio.get_running_loop().create_future()
        if self._writer is None:
            answer.set_exception(NotAnswered(f"no connection for {api.name}"))
            return answer
        number = next(self._numbers)
        header = request_header_bytes(api, version, number, self._client_id)
        body = header + encode_bytes(request, version)
        self._writer.write(len(body).to_bytes(4, "big") + body)
        self._waiting.append(_AskedOf(api, version, number, answer))
        return answer

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                if not 4 <= size <= MAX_FRAME_BYTES:
                    break
                self._take(memoryview(await reader.readexactly(size)))
        except (OSError, EOFError, DecodeError, IndexError):
            pass  # whoever waits hears NotAnswered
        self._reading = None
        self.close()

    def _take(self, frame: memoryview) -> None:
        api, version, number, answer = self._waiting[0]
        if int.from_bytes(frame[:4], "big") != number:
            raise DecodeError("the answer belongs to another request")
        flexible = api.is_flexible(version) and api.key != API_VERSIONS_KEY
        content = decode(api.response, version, frame, 5 if flexible else 4)
        self._waiting.popleft()
        if not answer.done():
            answer.set_result(content)
