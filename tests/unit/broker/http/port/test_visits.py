"""Bytes of one HTTP connection: the library gets as much as one request may have, in pieces."""

import asyncio
from typing import Any, cast

from broker.http.port.visits import (
    MOST_BODY_BYTES,
    MOST_HEAD_BYTES,
    PIECE_BYTES,
    Visit,
    Visits,
)


class Transport:
    def __init__(self) -> None:
        self.is_reading = True

    def get_extra_info(self, _: str) -> tuple[str, int]:
        return "192.0.2.1", 9

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        pass


class Library:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)

    def connection_made(self, _: object) -> None:
        pass

    def connection_lost(self, _: object) -> None:
        pass

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


async def test_a_request_gets_its_share_and_the_next_one_its_own() -> None:
    transport, library = Transport(), Library()
    visit = Visit(Visits(asyncio.get_running_loop(), lambda _: None), library)
    visit.connection_made(cast("asyncio.Transport", transport))
    sent = bytes(range(256)) * 1024
    visit.data_received(sent)
    assert library.size == MOST_HEAD_BYTES
    assert max(map(len, library.pieces)) == PIECE_BYTES
    assert not transport.is_reading
    visit.began()
    assert library.size == 2 * MOST_HEAD_BYTES + MOST_BODY_BYTES
    visit.ended()
    assert library.size == 3 * MOST_HEAD_BYTES + MOST_BODY_BYTES
    visit.began()
    visit.ended()
    assert transport.is_reading
    assert b"".join(library.pieces) == sent
    visit.connection_lost(None)


async def test_what_was_held_goes_with_the_connection() -> None:
    transport, library = Transport(), Library()
    visit: Any = Visit(Visits(asyncio.get_running_loop(), lambda _: None), library)
    visit.connection_made(transport)
    visit.data_received(bytes(1 << 20))
    visit.connection_lost(None)
    assert not visit._held
