"""Answers keep the order of requests, peers are held to their limits, and nobody else notices.

All of it on a listener in the clear, and on one with TLS.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import pytest

from broker.runtime.connection_limits import ConnectionLimits
from broker.security.certificates import Credentials, load_credentials
from config.security.tls import TlsConfig
from storage.posix import real_env
from tests.support.clients.certificates import Authority
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds import echo_server as worlds
from tests.support.worlds.echo_server import Echo, Limits, framed

served_with: Credentials | None = None
tls: ssl.SSLContext | None = None


@pytest.fixture(scope="module", autouse=True, params=["plain", "tls"])
def link(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    global served_with, tls  # noqa: PLW0603 - what all tests of this file connect with
    if request.param == "tls":
        authority = Authority()
        file = authority.server().write(tmp_path_factory.mktemp("tls") / "server.pem")
        fs = real_env().fs
        served_with = load_credentials(TlsConfig(keystore_location=str(file)), fs, 0)
        tls = ssl.create_default_context(cadata=authority.pem)
    yield
    served_with = tls = None


def echo_server(
    limits: ConnectionLimits | None = None, settings: Limits | None = None
) -> AbstractAsyncContextManager[Echo]:
    return worlds.echo_server(limits, settings, served_with)


@asynccontextmanager
async def connected(echo: Echo) -> AsyncIterator[AsyncWireClient]:
    client = await AsyncWireClient.connect("127.0.0.1", echo.port, tls)
    try:
        yield client
    finally:
        await client.close()


def padded(text: str) -> bytes:
    return text.encode().ljust(10)


async def ask(client: AsyncWireClient, *texts: str) -> None:
    await client.send_raw(b"".join(framed(padded(text)) for text in texts))


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with echo_server() as echo, connected(echo) as client:
        texts = [f"request {n}" for n in range(500)]
        await ask(client, *texts)
        for text in texts:
            assert await client.receive_frame() == padded(text)


async def test_a_parked_request_holds_back_later_answers_but_not_later_requests() -> None:
    async with echo_server() as echo, connected(echo) as client:
        await ask(client, "first", "later:a", "second", "later:b", "third")
        assert await client.receive_frame() == padded("first")
        await echo.until(lambda: len(echo.seen) == 5)
        echo.parked["b"].answer(padded("answer b"))
        await asyncio.sleep(0.01)
        echo.parked["a"].answer(padded("answer a"))
        received = [await client.receive_frame() for _ in range(4)]
        assert received == [padded(t) for t in ("answer a", "second", "answer b", "third")]


async def test_requests_behind_a_change_that_takes_turns_wait_until_it_is_answered() -> None:
    async with echo_server() as echo, connected(echo) as client, connected(echo) as other:
        await ask(client, "later:a", "change:b", "second", "change:c", "third")
        await echo.until(lambda: len(echo.seen) == 2)
        await ask(other, "not behind")
        assert await other.receive_frame() == padded("not behind")
        echo.parked["b"].answer(padded("b"))
        await echo.until(lambda: "c" in echo.parked)
        echo.parked["a"].answer(padded("a"))
        received = [await client.receive_frame() for _ in range(3)]
        assert received == [padded(text) for text in ("a", "b", "second")]
        await ask(client, "fourth")
        await asyncio.sleep(0.02)
        assert len(echo.seen) == 5
        echo.parked["c"].answer(padded("c"))
        received = [await client.receive_frame() for _ in range(3)]
        assert received == [padded(text) for text in ("c", "third", "fourth")]


async def test_an_answer_that_is_there_hurries_those_before_it_and_no_others() -> None:
    async with echo_server() as echo, connected(echo) as client:
        await ask(client, "later:a", "later:b", "later:c", "none")
        await echo.until(lambda: len(echo.seen) == 4)
        assert not any(each.hurried for each in echo.parked.values())
        echo.parked["b"].answer(padded("b"))
        assert [echo.parked[name].hurried for name in "abc"] == [True, False, False]
        await ask(client, "at once")
        await echo.until(lambda: echo.parked["c"].hurried)
        echo.parked["c"].answer(padded("c"))
        echo.parked["a"].answer(padded("a"))
        received = [await client.receive_frame() for _ in range(4)]
        assert received == [padded(t) for t in ("a", "b", "c", "at once")]


async def test_a_request_without_answer_leaves_no_gap() -> None:
    async with echo_server() as echo, connected(echo) as client:
        await ask(client, "one", "none", "later:a", "none", "two")
        await echo.until(lambda: len(echo.seen) == 5)
        echo.parked["a"].answer(padded("a"))
        assert [await client.receive_frame() for _ in range(3)] == [
            padded("one"),
            padded("a"),
            padded("two"),
        ]


async def test_requests_in_flight_are_bounded_and_resume_in_order() -> None:
    limits = ConnectionLimits(max_in_flight=4)
    async with echo_server(limits) as echo, connected(echo) as client:
        await ask(client, *[f"later:{n}" for n in range(12)])
        await echo.until(lambda: len(echo.seen) == 4)
        await asyncio.sleep(0.02)
        assert len(echo.seen) == 4
        for number in range(12):
            await echo.until(lambda n=number: str(n) in echo.parked)
            echo.parked[str(number)].answer(padded(f"answer {number}"))
            assert await client.receive_frame() == padded(f"answer {number}")


async def test_a_client_that_does_not_read_is_not_read_from() -> None:
    limits = ConnectionLimits(max_queued_bytes=100_000)
    async with echo_server(limits) as echo, connected(echo) as client:
        client.writer.transport.pause_reading()
        for _ in range(300):
            client.writer.write(framed(padded("big:1000000")))
        await echo.until(lambda: echo.server.queued_bytes > 100_000)
        await asyncio.sleep(0.05)
        seen = len(echo.seen)
        assert seen < 100
        assert echo.server.queued_bytes < 70_000_000
        client.writer.transport.resume_reading()
        for _ in range(300):
            assert len(await client.receive_frame()) == 1_000_000


async def until_nothing_moves(echo: Echo) -> None:
    """All buffers on the way to a client that does not read are full."""
    before, still = -1, 0
    while still < 6:  # a machine with much to do may pause for longer than one look
        still = still + 1 if before == echo.server.sent_bytes else 0
        before = echo.server.sent_bytes
        await asyncio.sleep(0.05)


async def test_a_stalled_reader_is_dropped_and_others_are_served() -> None:
    async with echo_server() as echo, connected(echo) as silent, connected(echo) as other:
        silent.writer.transport.pause_reading()
        await ask(silent, *["big:4000000"] * 8)
        await echo.until(lambda: echo.server.queued_bytes > 0)
        await until_nothing_moves(echo)
        await ask(other, "alive")
        await other.receive_frame()
        await echo.sweep(0)
        await echo.sweep(59)
        assert len(echo.server.connections) == 2
        await echo.sweep(61)
        await echo.until(lambda: len(echo.server.connections) == 1)
        assert echo.probes.connections_closed["stalled_reader"] == 1
        await ask(other, "still here")
        assert await other.receive_frame() == padded("still here")


async def test_the_longest_queues_go_when_all_together_hold_too_much() -> None:
    limits = ConnectionLimits(max_queued_bytes=10**9, all_queued_bytes=25_000_000)
    async with echo_server(limits) as echo, connected(echo) as greedy, connected(echo) as modest:
        for client, count in ((greedy, 3), (modest, 1)):
            client.writer.transport.pause_reading()
            await ask(client, *["big:14000000"] * count)
        await echo.until(lambda: echo.server.queued_bytes > 25_000_000)
        await echo.sweep(0)
        await echo.until(lambda: len(echo.server.connections) == 1)
        assert echo.probes.connections_closed["memory"] == 1
        modest.writer.transport.resume_reading()
        assert len(await modest.receive_frame()) == 14_000_000


async def test_who_sends_no_complete_frame_in_time_is_dropped() -> None:
    async with echo_server() as echo, connected(echo) as client:
        await client.send_raw(b"\x00\x00\x00\x20half")
        await echo.until(lambda: len(echo.server.connections) == 1)
        await echo.sweep(1)
        await echo.sweep(10)
        assert len(echo.server.connections) == 1
        await echo.sweep(12)
        assert await client.receive_all() == b""
        assert echo.probes.connections_closed["first_frame_late"] == 1


async def test_a_frame_that_never_ends_is_dropped_later() -> None:
    async with echo_server() as echo, connected(echo) as client:
        await ask(client, "good")
        await client.receive_frame()
        await client.send_raw(b"\x00\x00\x00\x20half")
        await asyncio.sleep(0.02)
        await echo.sweep(1)
        await client.send_raw(b"more")
        await asyncio.sleep(0.02)
        await echo.sweep(30)
        assert len(echo.server.connections) == 1
        await echo.sweep(32)
        assert await client.receive_all() == b""
        assert echo.probes.connections_closed["frame_late"] == 1


async def test_an_idle_connection_ends_and_a_waiting_one_does_not() -> None:
    limits = ConnectionLimits(idle_seconds=600)
    async with echo_server(limits) as echo, connected(echo) as idle, connected(echo) as waiting:
        await ask(idle, "good")
        await idle.receive_frame()
        await ask(waiting, "later:a")
        await echo.until(lambda: "a" in echo.parked)
        await echo.sweep(0)
        await echo.sweep(601)
        assert await idle.receive_all() == b""
        assert echo.probes.connections_closed["idle"] == 1
        assert len(echo.server.connections) == 1


async def test_a_refused_request_ends_its_connection_after_the_answers_before_it() -> None:
    async with echo_server() as echo, connected(echo) as client, connected(echo) as other:
        await ask(client, "one", "close", "two")
        assert await client.receive_all() == framed(padded("one"))
        assert echo.seen == [padded("one"), padded("close")]
        await ask(other, "alive")
        assert await other.receive_frame() == padded("alive")


async def test_a_parked_request_that_fails_ends_the_connection() -> None:
    async with echo_server() as echo, connected(echo) as client:
        await ask(client, "later:a")
        await echo.until(lambda: "a" in echo.parked)
        echo.parked["a"].fail("internal_error")
        assert await client.receive_all() == b""
        assert echo.probes.connections_closed["internal_error"] == 1


async def test_parked_requests_are_abandoned_when_the_client_goes() -> None:
    async with echo_server() as echo:
        async with connected(echo) as client:
            await ask(client, "later:a", "later:b")
            await echo.until(lambda: len(echo.parked) == 2)
        await echo.until(lambda: not echo.server.connections)
        assert [echo.parked[name].abandoned for name in "ab"] == [True, True]


async def test_http_on_the_kafka_port_is_told_where_to_go() -> None:
    async with echo_server() as echo, connected(echo) as client:
        await client.send_raw(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = await client.receive_all()
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"Kafka" in answer
        assert echo.probes.foreign["http"] == 1


async def test_tls_on_a_plaintext_port_is_closed_and_counted() -> None:
    async with echo_server() as echo, connected(echo) as client:
        await client.send_raw(bytes.fromhex("16030102000100"))
        assert await client.receive_all() == b""
        assert echo.probes.foreign["tls"] == 1


async def test_garbage_ends_only_the_connection_it_came_on() -> None:
    async with echo_server() as echo, connected(echo) as good:
        for garbage in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xffxx", b"\x00\x00\x00\x00"):
            async with connected(echo) as bad:
                await bad.send_raw(garbage)
                assert await bad.receive_all() == b""
        assert echo.probes.connections_closed["frame_size"] == 3
        await ask(good, "alive")
        assert await good.receive_frame() == padded("alive")


async def test_connections_in_all_and_per_address_are_limited() -> None:
    settings = Limits(max_connections=3, max_connections_per_ip=2)
    async with echo_server(settings=settings) as echo:
        async with connected(echo) as first, connected(echo) as second:
            for client in (first, second):
                await ask(client, "alive")
                await client.receive_frame()
            with suppress(ConnectionResetError):  # of a handshake
                async with connected(echo) as third:
                    assert await third.receive_all() == b""
            assert echo.probes.connections_refused["max_connections_per_ip"] == 1
        await echo.until(lambda: not echo.server.connections)
        async with connected(echo) as again:
            await ask(again, "alive")
            assert await again.receive_frame() == padded("alive")


async def test_a_graceful_stop_answers_what_is_in_flight() -> None:
    async with echo_server() as echo, connected(echo) as client:
        await ask(client, "later:a")
        await echo.until(lambda: "a" in echo.parked)
        draining = asyncio.ensure_future(echo.server.drain(10))
        await asyncio.sleep(0.03)
        assert not draining.done()
        echo.parked["a"].answer(padded("last"))
        assert await draining
        assert await client.receive_all() == framed(padded("last"))


async def test_a_stop_cuts_off_who_takes_too_long() -> None:
    async with echo_server() as echo, connected(echo) as client:
        await ask(client, "later:a")
        await echo.until(lambda: "a" in echo.parked)
        assert not await echo.server.drain(0.02)
        assert await client.receive_all() == b""
