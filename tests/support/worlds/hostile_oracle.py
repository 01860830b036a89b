"""Invariants of a broker right after an attack, before time or an administrator helps it.

Each check raises AssertionError, which tells what is broken.
"""

import asyncio
import ctypes
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broker.runtime.answers import MOST_BYTES
from protocol.codec import encode_bytes
from protocol.headers import request_header_bytes
from protocol.records.batch import iter_headers
from protocol.records.record import read_records
from tests.support.clients.plain_talk import Talk
from tests.support.clients.served_apis import served_apis
from tests.support.clients.wire import AsyncWireClient, frame, parse_response

MOST_CPU_SECONDS = 4.0
"""Of the loop, for what one connection sends in one attack; strangers' own part included. Wide, so
that a slow machine finds nothing."""
SOON_SECONDS, MUTED_MS = 0.2, 61_000
READ_BYTES, MOST_UNPACKED_BYTES = 1 << 20, 128 << 20
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
PROCESS = Path("/proc/self")
PEAK_RESET = PROCESS / "clear_refs"
Advance = Callable[[int], Awaitable[Any]]


def missing() -> str | None:
    """The facility that this machine lacks for judging memory; None when it has all."""
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        return "the C library tells no memory (mallinfo2 of glibc 2.33)"
    if not os.access(PEAK_RESET, os.W_OK):
        return f"{PEAK_RESET} cannot be written"
    return None


class CostError(Exception):
    """Raised when requests of strangers cost more than they may."""


class StrangersClient(AsyncWireClient):
    """A connection that notes the size of the largest answer."""

    largest = 0

    async def receive_frame(self) -> bytes:
        answer = await super().receive_frame()
        StrangersClient.largest = max(StrangersClient.largest, len(answer))
        return answer


@contextmanager
def bounded_cost(what: str, most_bytes: int) -> Iterator[None]:
    """Checks that strangers inside neither stop the loop nor use more memory, at any moment."""
    PEAK_RESET.write_text("5")  # the peak begins again
    before, began = _peak_bytes(), time.thread_time()
    StrangersClient.largest = 0
    try:
        yield
    finally:
        _judge(what, time.thread_time() - began, _peak_bytes() - before, most_bytes)


def _judge(what: str, spent: float, grown: int, most_bytes: int) -> None:
    largest = StrangersClient.largest
    if spent > MOST_CPU_SECONDS:
        raise CostError(f"{what} took {spent:.1f} s of the loop")
    if grown > most_bytes:
        raise CostError(f"{what} took {grown >> 20} MiB at a time")
    if largest > 2 * MOST_BYTES:
        raise CostError(f"{what} was answered by {largest >> 20} MiB")


def _peak_bytes() -> int:
    found = PEAK.search((PROCESS / "status").read_text())
    assert found is not None
    return int(found[1]) << 10


async def every_api_answers(client: AsyncWireClient, advance: Advance) -> None:
    """The emptiest request of each API is answered, whatever is set; a throttled one after it."""
    for number, api in enumerate(served_apis().values()):
        request = api.request()
        if hasattr(request, "acks"):
            request.acks = 1
        version = api.max_version
        header = request_header_bytes(api, version, number, "emptiest")
        try:
            await client.send_raw(frame(header + encode_bytes(request, version)))
            answer = await _answer(client, advance)
        except (OSError, EOFError, TimeoutError) as error:
            raise AssertionError(f"{api.name}, empty, is not answered: {error!r}") from error
        assert parse_response(api, version, answer)[0] == number


async def _answer(client: AsyncWireClient, advance: Advance) -> bytes:
    answer = asyncio.ensure_future(client.receive_frame())
    done, _ = await asyncio.wait((answer,), timeout=SOON_SECONDS)
    if not done:
        await advance(MUTED_MS)
    return await answer


async def records_follow_one_another(talk: Talk, topics: tuple[str, ...]) -> None:
    """Checks that accepted records can be read: offsets in a row, in each batch and in the
    partition.
    """
    told = await talk.ask("Metadata", 12, topics=[{"name": name} for name in topics])
    for topic in told.topics:
        for part in topic.partitions if not topic.error_code else ():
            await _partition(talk, topic.name, part.partition_index)


async def _partition(talk: Talk, topic: str, index: int) -> None:
    times: dict[int, int] = {}
    at = (await _listed(talk, topic, index, -2)).offset
    while data := await _read(talk, topic, index, at):
        for position, header in iter_headers(memoryview(data)):
            batch = memoryview(data)[position : position + header.size_bytes]
            records = read_records(batch, limit_bytes=MOST_UNPACKED_BYTES)
            offsets = [each.offset for each in records]
            row = list(range(header.base_offset, header.base_offset + len(offsets)))
            assert offsets == row, f"{topic}-{index}: offsets {offsets[:9]} in a batch of {row[:9]}"
            assert header.last_offset + 1 > at, f"{topic}-{index}: {header.last_offset} after {at}"
            times |= {each.offset: each.timestamp for each in records}
            at = header.last_offset + 1
    if times:
        await _found_by_time(talk, topic, index, times)


async def _found_by_time(talk: Talk, topic: str, index: int, times: dict[int, int]) -> None:
    wanted = min(times.values())
    first = min(offset for offset, each in times.items() if each == wanted)
    found = await _listed(talk, topic, index, max(wanted, 0))
    if wanted >= 0 and not found.error_code:  # it may have a search take another round
        assert 0 <= found.offset <= first, f"{topic}-{index}: {wanted} is at {found}, not {first}"


async def _listed(talk: Talk, topic: str, index: int, timestamp: int) -> Any:
    parts = [{"partition_index": index, "timestamp": timestamp}]
    asked = [{"name": topic, "partitions": parts}]
    answer = await talk.ask("ListOffsets", 7, replica_id=-1, topics=asked)
    return answer.topics[0].partitions[0]


async def _read(talk: Talk, topic: str, index: int, offset: int) -> bytes:
    asked = {"partition": index, "fetch_offset": offset, "partition_max_bytes": READ_BYTES}
    answer = await talk.ask(
        "Fetch", 12, min_bytes=0, max_bytes=READ_BYTES,
        topics=[{"topic": topic, "partitions": [asked]}],
    )  # fmt: skip
    part = answer.responses[0].partitions[0]
    found = answer.error_code, part.error_code
    assert found == (0, 0), f"Fetch of {topic}-{index} at {offset}: {found}"
    return bytes(part.records or b"")
