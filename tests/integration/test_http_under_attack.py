"""Probes, scrapes and pages of the HTTP port while many ask, badly, or under other names."""

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from broker.daemon.app import Broker
from broker.http.port import shared_scrape
from broker.runtime.event_log import journal
from config.errors import ConfigError
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import running_broker

TOPICS = 2000
PROBE_SECONDS = 1.0


async def ask(
    broker: Broker, path: str, host: str | None = "", **headers: str
) -> tuple[int, bytes]:
    def blocking() -> tuple[int, bytes]:
        connection = HTTPConnection(str(broker.http), timeout=60)
        try:
            connection.putrequest("GET", path, skip_host=True)
            if host is not None:
                connection.putheader("Host", host or str(broker.http))
            for name, value in headers.items():
                connection.putheader(name, value.encode("latin-1"))
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    return await asyncio.to_thread(blocking)


async def test_a_probe_does_not_wait_behind_scrapes(tmp_path: Path) -> None:
    """60 scrapes of 2,000 topics held /livez up for 5 s."""
    async with running_broker(tmp_path) as broker:
        for number in range(TOPICS):
            broker.services.probes.appended(f"t{number}", 1, 1, 1)
        await ask(broker, "/metrics")
        stop = asyncio.Event()

        async def scrape(path: str) -> None:
            while not stop.is_set():
                await ask(broker, path)

        scrapes = [
            asyncio.ensure_future(scrape(path))
            for path in ("/metrics", "/metrics/kafka")
            for _ in range(8)
        ]
        await asyncio.sleep(0.3)
        slowest = 0.0
        for path in ("/livez", "/readyz") * 5:
            began = time.monotonic()
            assert (await ask(broker, path))[0] == 200
            slowest = max(slowest, time.monotonic() - began)
        stop.set()
        await asyncio.gather(*scrapes)
    assert slowest < PROBE_SECONDS


async def test_scrapes_at_one_time_are_one_scrape_and_it_is_kept_a_second() -> None:
    now, asked = 0.0, []

    def scrape(path: str) -> tuple[str, bytes]:
        asked.append(path)
        time.sleep(0.05)
        if path == "bad":
            raise ValueError(path)
        return "text", str(len(asked)).encode()

    shared = shared_scrape.SharedScrape(scrape, lambda: now)
    answers = await asyncio.gather(*(shared.text("metrics") for _ in range(60)))
    assert set(answers) == {("text", b"1")}
    now += shared_scrape.KEPT_SECONDS - 0.01
    assert await shared.text("metrics") == ("text", b"1")
    assert await shared.text("metrics/kafka") == ("text", b"2")
    now += 0.01
    assert await shared.text("metrics") == ("text", b"3")
    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            await shared.text("bad")
    assert asked.count("bad") == 2, "a failure is not kept"
    gone = asyncio.ensure_future(shared.text("other"))
    await asyncio.sleep(0)
    kept = asyncio.ensure_future(shared.text("other"))
    await asyncio.sleep(0)
    gone.cancel()
    assert (await kept)[0] == "text", "who leaves takes nothing from the others"
    shared.close()


async def test_metrics_and_pages_answer_to_a_name_of_the_broker_alone(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        for path in ("/metrics", "/metrics/kafka", "/", "/time"):
            for host in ("evil.example", "evil.example:9404", "a@b", "10.0.0.7"):
                status, body = await ask(broker, path, host)
                assert status in {400, 403}, (path, host)
                assert b"# HELP" not in body
            for good in ("", "localhost", "127.0.0.1:1", "broker:9404"):
                assert (await ask(broker, path, good))[0] == 200
        for path in ("/livez", "/readyz"):
            assert (await ask(broker, path, "evil.example"))[0] == 200
        assert broker.services.probes.http_refusals["foreign_host"] > 0


async def test_where_it_listens_for_others_names_of_containers_are_good(tmp_path: Path) -> None:
    settings = {
        "horolog.http.listener": "0.0.0.0:0",
        "horolog.http.hosts": "broker.example.org",
    }
    async with running_broker(tmp_path, settings) as broker:
        broker.services.server.http_address = broker.services.server.http_address._replace(
            host="127.0.0.1"
        )  # type: ignore[union-attr]
        for host in ("broker:9404", "172.17.0.2:9404", "[::1]:9404", "broker.example.org", None):
            assert (await ask(broker, "/metrics", host))[0] == (400 if host is None else 200), host
        for host in ("evil.example", "evil.example:9404"):
            assert (await ask(broker, "/metrics", host))[0] == 403


async def test_a_token_of_any_bytes_is_refused_as_a_wrong_one(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef")
    file.chmod(0o600)
    settings = {"horolog.http.token.file": str(file), "horolog.http.listener": "0.0.0.0:0"}
    async with running_broker(tmp_path / "data", settings) as broker:
        broker.services.server.http_address = broker.services.server.http_address._replace(
            host="127.0.0.1"
        )  # type: ignore[union-attr]
        for word in ("caf\xe9", "\xff\xfe", "0123456789abcde\xe9", "\x80"):
            status, _ = await ask(broker, "/api/topics", Authorization=f"Bearer {word}")
            assert status == 401
        status, _ = await ask(broker, "/api/topics", Authorization="Bearer 0123456789abcdef")
        assert status == 200


async def test_a_token_file_that_everybody_may_read_ends_the_start(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef")
    settings = {"horolog.http.token.file": str(file)}
    for mode, is_good in ((0o600, True), (0o640, True), (0o644, False), (0o602, False)):
        file.chmod(mode)
        broker = running_broker(tmp_path / f"data{mode}", settings)
        async with AsyncExitStack() as stack:
            if is_good:
                await stack.enter_async_context(broker)
                continue
            with pytest.raises(ConfigError, match="chmod 600") as refused:
                await stack.enter_async_context(broker)
            assert "0123456789abcdef" not in str(refused.value)


async def test_a_broker_that_lets_nobody_in_is_not_ready(tmp_path: Path) -> None:
    settings = {"max.connections": "3", "max.connections.per.ip": "1000"}
    async with running_broker(tmp_path, settings) as broker, AsyncExitStack() as stack:
        assert (await ask(broker, "/readyz"))[0] == 200
        for _ in range(3):
            await stack.enter_async_context(await AsyncWireClient.connect(*broker.bootstrap))
        await asyncio.sleep(0.1)
        status, body = await ask(broker, "/readyz")
        assert status == 503
        assert b"connections failed: 3 connections, and max.connections is 3" in body
        assert (await ask(broker, "/livez"))[0] == 200
        await stack.aclose()
        await asyncio.sleep(0.1)
        assert (await ask(broker, "/readyz"))[0] == 200


async def test_a_head_that_never_ends_is_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        reader, writer = await asyncio.open_connection(*str(broker.http).split(":"))
        writer.write(b"GET / HTTP/1.1\r\n" + (b"X: " + b"x" * 9000 + b"\r\n") * 100)
        with suppress(ConnectionResetError):  # it did not wait for the rest
            assert (await reader.read()).startswith(b"HTTP/1.0 400")
        writer.close()
        assert (await ask(broker, "/livez"))[0] == 200


async def test_a_client_that_leaves_before_its_body_is_no_error_of_ours(tmp_path: Path) -> None:
    """A stranger could fill the log."""
    lines: list[str] = []
    async with running_broker(tmp_path) as broker:
        write, journal.write = journal.write, lines.append
        try:
            _, writer = await asyncio.open_connection(*str(broker.http).split(":"))
            head = f"POST /api/scrub HTTP/1.1\r\nHost: {broker.http}\r\nContent-Length: 9\r\n\r\n"
            writer.write(head.encode())
            await asyncio.sleep(0.1)
            writer.close()
            await asyncio.sleep(0.1)
        finally:
            journal.write = write
    assert not [line for line in lines if "level=error" in line]


async def test_requests_that_come_together_are_answered_in_order(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        reader, writer = await asyncio.open_connection(*str(broker.http).split(":"))
        one = f"GET /livez HTTP/1.1\r\nHost: {broker.http}\r\nX: {'x' * 4000}\r\n\r\n".encode()
        writer.write(one * 30 + one.replace(b"Host", b"Connection: close\r\nHost"))
        heard = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        assert heard.count(b"HTTP/1.1 200") == 31
