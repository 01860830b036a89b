"""TLS on a socket: nothing leaves in the clear, and clients that come to nothing end by themselves.

What `Connection` promises is tested with TLS in test_connection.
"""

import asyncio
import random
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import cast

import pytest
from cryptography import x509

from broker.runtime.connection_limits import ConnectionLimits
from broker.runtime.lanes import DiskLane
from broker.security.certificates import Credentials, load_credentials
from broker.security.tls_pipe import TlsPipe
from broker.server.page_cache import PageCache
from broker.server.tls_listener import MOST_HALF_DONE
from broker.server.tls_sender import TlsSender
from config.security.tls import TlsConfig
from storage.env import File
from storage.files.file_slice import FileSlice
from storage.posix import real_env
from tests.support.clients.certificates import Authority
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.echo_server import Echo, echo_server, framed
from tests.support.worlds.handler_world import InlineLanes

MARK = b"PLAINTEXT MARK THAT NOBODY ON THE WAY MAY READ "
ALERT, HANDSHAKE, DATA = 21, 22, 23


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def credentials(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    file = authority.server().write(tmp_path_factory.mktemp("tls") / "server.pem")
    return load_credentials(TlsConfig(keystore_location=str(file)), real_env().fs, 0)


@pytest.fixture(params=["TLSv1_2", "TLSv1_3"])
def tls(request: pytest.FixtureRequest, authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[request.param]
    return context


class Tap:
    """Stands between client and server and keeps what either of them sends."""

    def __init__(self) -> None:
        self.sent, self.answered = bytearray(), bytearray()
        self.port = 0

    async def _carry(self, reader, writer, kept: bytearray) -> None:
        try:
            while data := await reader.read(65536):
                kept += data
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def serve(self, reader, writer, port: int) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(
            self._carry(reader, far_writer, self.sent),
            self._carry(far_reader, writer, self.answered),
        )


@asynccontextmanager
async def tapped(echo: Echo) -> AsyncIterator[Tap]:
    tap = Tap()
    server = await asyncio.start_server(
        lambda reader, writer: tap.serve(reader, writer, echo.port), "127.0.0.1", 0
    )
    tap.port = server.sockets[0].getsockname()[1]
    try:
        yield tap
    finally:
        server.close()
        await asyncio.sleep(0.01)


async def connected_socket(port: int) -> socket.socket:
    made = socket.socket()
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
    return made


def records(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of the TLS records that `stream` consists of; fails on anything else."""
    at = 0
    while at < len(stream):
        kind, major, size = stream[at], stream[at + 1], int.from_bytes(stream[at + 3 : at + 5])
        assert 20 <= kind <= 23, f"byte {at} begins no record: {stream[at : at + 40]!r}"
        assert major == 3
        assert size <= 16384 + 256
        assert at + 5 + size <= len(stream), "the stream ends inside a record"
        yield kind, bytes(stream[at + 5 : at + 5 + size])
        at += 5 + size


async def test_no_byte_of_a_request_an_answer_a_file_or_an_end_is_in_the_clear(
    credentials: Credentials, tls: ssl.SSLContext, tmp_path: Path
) -> None:
    content = MARK * 60_000
    fs = real_env().fs
    path = tmp_path / "log"
    path.write_bytes(content)
    file = fs.open(str(path), write=False)
    async with echo_server(credentials=credentials) as echo, tapped(echo) as tap:
        client = await AsyncWireClient.connect("127.0.0.1", tap.port, tls)
        echo.parts["a"] = [
            (len(MARK) + 2 * len(content)).to_bytes(4, "big") + MARK,
            FileSlice(file, 0, len(content)),
            FileSlice(file, 0, len(content)),
        ]
        for request in (MARK, b"parts:a   ", MARK * 3000):
            await client.send_raw(framed(request))
        assert await client.receive_frame() == MARK
        assert await client.receive_frame() == MARK + 2 * content
        assert await client.receive_frame() == MARK * 3000
        await client.send_raw(framed(b"later:b   "))
        await echo.until(lambda: "b" in echo.parked)
        draining = asyncio.ensure_future(echo.server.drain(10))
        await asyncio.sleep(0.02)
        echo.parked["b"].answer(MARK)
        assert await client.receive_frame() == MARK
        assert await draining
        assert await client.receive_all() == b""
        await client.close()
    for stream in (tap.sent, tap.answered):
        assert MARK[:12] not in stream
        assert [kind for kind, _ in records(bytes(stream))].count(DATA) > 3
    assert len(tap.answered) > len(content)


async def test_a_request_that_is_refused_ends_encrypted_with_close_notify(
    credentials: Credentials, tls: ssl.SSLContext
) -> None:
    async with echo_server(credentials=credentials) as echo, tapped(echo) as tap:
        client = await AsyncWireClient.connect("127.0.0.1", tap.port, tls)
        await client.send_raw(framed(MARK) + b"GET /metrics HTTP/1.1\r\n\r\n")
        answer = await client.receive_all()
        assert answer == framed(MARK)
        await client.close()
        async with asyncio.timeout(10):
            while echo.server.connections:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.001)
    assert MARK[:12] not in tap.answered
    kinds = [kind for kind, _ in records(bytes(tap.answered))]
    assert kinds[-1] == (ALERT if tls.maximum_version is ssl.TLSVersion.TLSv1_2 else DATA)


@pytest.mark.parametrize("first", [framed(b"\x00\x12\x00\x03" + b"k" * 40), b"GET / HTTP/1.1\r\n"])
async def test_a_client_in_the_clear_is_named_and_gets_no_byte(
    credentials: Credentials, tls: ssl.SSLContext, first: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    async with echo_server(credentials=credentials) as echo:
        other = await AsyncWireClient.connect("127.0.0.1", echo.port, tls)
        client = await AsyncWireClient.connect("127.0.0.1", echo.port)
        await client.send_raw(first)
        assert await client.receive_all() == b""
        assert echo.probes.tls_failures == {"no_tls": 1}
        await other.send_raw(framed(b"undisturbed"))
        assert await other.receive_frame() == b"undisturbed"
        await client.close()
        await other.close()
    assert "in the clear" in capsys.readouterr().err


async def test_half_a_handshake_ends_in_time_and_a_done_one_counts(
    credentials: Credentials, tls: ssl.SSLContext
) -> None:
    async with echo_server(credentials=credentials) as echo:
        half = await AsyncWireClient.connect("127.0.0.1", echo.port)
        await half.send_raw(bytes.fromhex("16030100ff"))
        await echo.until(lambda: len(echo.server.connections) == 1)
        await echo.sweep(1)
        await echo.sweep(10)
        assert len(echo.server.connections) == 1
        await echo.sweep(12)
        assert await half.receive_all() == b""
        assert echo.probes.connections_closed["handshake_late"] == 1
        assert echo.probes.tls_failures == {"late": 1}
        done = await AsyncWireClient.connect("127.0.0.1", echo.port, tls)
        await echo.until(lambda: echo.probes.tls_handshakes == {"SSL": 1})
        await done.close()
        await half.close()


async def test_a_handshake_takes_64_kib_and_no_more(credentials: Credentials) -> None:
    async with echo_server(credentials=credentials) as echo:
        client = await AsyncWireClient.connect("127.0.0.1", echo.port)
        hello = b"\x01\x00\xff\xff" + b"\x03\x03" + bytes(70_000)
        for at in range(0, len(hello), 16_000):
            piece = hello[at : at + 16_000]
            await client.send_raw(b"\x16\x03\x01" + len(piece).to_bytes(2) + piece)
        await client.receive_all()
        assert sum(echo.probes.tls_failures.values()) == 1
        await client.close()


async def test_of_too_many_half_handshakes_the_oldest_ends(
    credentials: Credentials, tls: ssl.SSLContext
) -> None:
    async with echo_server(credentials=credentials) as echo:
        done = await AsyncWireClient.connect("127.0.0.1", echo.port, tls)
        half = [await connected_socket(echo.port) for _ in range(MOST_HALF_DONE)]
        await echo.until(lambda: len(echo.server.connections) == MOST_HALF_DONE + 1)
        assert not echo.probes.tls_failures
        with closing(await connected_socket(echo.port)):
            await echo.until(lambda: echo.probes.tls_failures["crowded"] == 1)
            assert await asyncio.get_running_loop().sock_recv(half[0], 1) == b""
            await done.send_raw(framed(b"undisturbed"))
            assert await done.receive_frame() == b"undisturbed"
        for each in half:
            each.close()
        await done.close()


async def test_requests_that_wait_in_the_pipe_of_a_muted_client_are_handled(
    credentials: Credentials, tls: ssl.SSLContext
) -> None:
    """They came before the quota struck, so no further event of the socket reports them."""
    async with echo_server(credentials=credentials) as echo:
        client = await AsyncWireClient.connect("127.0.0.1", echo.port, tls)
        await echo.until(lambda: bool(echo.server.connections))
        (connection,) = echo.server.connections
        texts = [f"{n:010d}".encode() * 300 for n in range(200)]
        connection.mute(0.2)
        await client.send_raw(b"".join(map(framed, texts)))
        await asyncio.sleep(0.05)
        assert not echo.seen
        for text in texts:
            assert await client.receive_frame() == text
        await client.close()


async def test_mutes_of_no_time_follow_one_another(
    credentials: Credentials, tls: ssl.SSLContext
) -> None:
    """A timer of less than a millisecond is one of uvloop's that know no time."""
    async with echo_server(credentials=credentials) as echo:
        client = await AsyncWireClient.connect("127.0.0.1", echo.port, tls)
        await client.send_raw(framed(b"the first request"))
        assert await client.receive_frame() == b"the first request"
        (connection,) = echo.server.connections
        for seconds in (0, 0.0001, 0.0004, 0.01, 0, 0.0004):
            connection.mute(seconds)
        await client.send_raw(framed(b"the second request"))
        assert await client.receive_frame() == b"the second request"
        await client.close()


async def test_mutes_in_the_middle_of_large_and_small_requests_lose_nothing(
    credentials: Credentials, tls: ssl.SSLContext
) -> None:
    chance = random.Random(8)
    async with echo_server(credentials=credentials) as echo:
        client = await AsyncWireClient.connect("127.0.0.1", echo.port, tls)
        texts = [chance.randbytes(chance.choice((10, 900, 40_000, 700_000))) for _ in range(60)]
        texts = [b"echo" + text for text in texts]
        sending = asyncio.ensure_future(client.send_raw(b"".join(map(framed, texts))))
        for text in texts:
            for connection in echo.server.connections:
                connection.mute(chance.choice((0, 0.001, 0.01)))
            assert await client.receive_frame() == text
        await sending
        await client.close()


async def test_answers_of_a_pipeline_reach_a_slow_reader_whole_and_memory_is_bounded(
    credentials: Credentials, tls: ssl.SSLContext, tmp_path: Path
) -> None:
    content = random.Random(5).randbytes(6_000_000)
    path = tmp_path / "log"
    path.write_bytes(content)
    file = real_env().fs.open(str(path), write=False)
    limits = ConnectionLimits(max_queued_bytes=1_000_000)
    async with echo_server(limits, credentials=credentials) as echo:
        client = await AsyncWireClient.connect("127.0.0.1", echo.port, tls)
        head = len(content).to_bytes(4, "big")
        echo.parts["a"] = [head, FileSlice(file, 0, len(content))]
        await client.send_raw(framed(b"parts:a   ") * 20)
        most = 0
        for number in range(20):
            await asyncio.sleep(0.01)
            most = max(most, echo.server.queued_bytes)
            assert await client.receive_frame() == content, number
        assert most < 700_000
        await client.close()


async def test_a_close_notify_of_the_client_is_the_end(
    credentials: Credentials, tls: ssl.SSLContext
) -> None:
    async with echo_server(credentials=credentials) as echo:
        client = await AsyncWireClient.connect("127.0.0.1", echo.port, tls)
        await client.send_raw(framed(b"one request"))
        assert await client.receive_frame() == b"one request"
        await client.close()
        await echo.until(lambda: not echo.server.connections)
        assert not echo.probes.connections_closed


async def test_bytes_that_no_key_made_end_the_connection(
    credentials: Credentials, tls: ssl.SSLContext
) -> None:
    async with echo_server(credentials=credentials) as echo, tapped(echo) as tap:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        end = tls.wrap_bio(incoming, outgoing, server_hostname="localhost")
        raw = await AsyncWireClient.connect("127.0.0.1", tap.port)
        while True:
            try:
                end.do_handshake()
                break
            except ssl.SSLWantReadError:
                await raw.send_raw(outgoing.read())
                incoming.write(await raw.reader.read(65536))
        await raw.send_raw(outgoing.read() + b"\x17\x03\x03\x00\x40" + bytes(64))
        await raw.receive_all()
        await echo.until(lambda: not echo.server.connections)
        assert echo.probes.connections_closed["broken"] == 1
        assert echo.seen == []
        await raw.close()
    assert list(records(bytes(tap.answered)))


@pytest.fixture
def who() -> x509.Name:
    return x509.Name.from_rfc4514_string("CN=Duke,OU=Service Users,O=Org,C=US")


def with_clients(authority: Authority, path: Path, how: str, rules: str = "DEFAULT") -> Credentials:
    config = TlsConfig(
        keystore_location=str(authority.server().write(path / "server.pem")),
        truststore_certificates=authority.pem,
        client_auth=how,
        principal_mapping_rules=rules,
    )
    return load_credentials(config, real_env().fs, 0)


async def user_of(credentials: Credentials, context: ssl.SSLContext) -> tuple[str, Echo]:
    """The user that one request is served for; empty when it is not served."""
    async with echo_server(credentials=credentials) as echo:
        with suppress(ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            client = await AsyncWireClient.connect("127.0.0.1", echo.port, context)
            await client.send_raw(framed(b"who am I? "))
            await client.receive_frame()
            (connection,) = echo.server.connections
            return str(connection.peer.principal), echo
        return "", echo


@pytest.mark.parametrize("how", ["requested", "required"])
async def test_the_user_is_the_one_that_the_clients_certificate_names(
    authority: Authority, tls: ssl.SSLContext, tmp_path: Path, how: str, who: x509.Name
) -> None:
    tls.load_cert_chain(authority.client(who).write(tmp_path / "client.pem"))
    found, echo = await user_of(with_clients(authority, tmp_path, how), tls)
    assert found == "User:CN=Duke,OU=Service Users,O=Org,C=US"
    assert echo.looked_up[-1] == found, "it has the rights of that user"
    rules = with_clients(authority, tmp_path, how, "RULE:CN=(.*?),.*/$1/L")
    assert (await user_of(rules, tls))[0] == "User:duke"
    without = with_clients(authority, tmp_path, "none")
    assert (await user_of(without, tls))[0] == "User:ANONYMOUS"
    found, echo = await user_of(with_clients(authority, tmp_path, how, "RULE:O=.*/x/"), tls)
    assert (found, echo.seen) == ("", [])
    assert echo.probes.tls_failures == {"principal_refused": 1}


async def test_who_shows_no_certificate_or_a_strange_one_is_anonymous_or_refused(
    authority: Authority, tls: ssl.SSLContext, tmp_path: Path, who: x509.Name
) -> None:
    requested = with_clients(authority, tmp_path, "requested")
    assert (await user_of(requested, tls))[0] == "User:ANONYMOUS"
    found, echo = await user_of(with_clients(authority, tmp_path, "required"), tls)
    assert (found, echo.seen) == ("", [])
    assert echo.probes.tls_failures == {"no_certificate": 1}
    tls.load_cert_chain(Authority().client(who).write(tmp_path / "strange.pem"))
    found, echo = await user_of(requested, tls)
    assert (found, echo.seen) == ("", [])
    assert echo.probes.tls_failures == {"certificate_refused": 1}


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
async def test_a_client_that_only_changes_keys_is_ended(credentials: Credentials) -> None:
    """Each change costs new keys on both sides, and carries nothing."""
    async with echo_server(credentials=credentials) as echo:
        process = await asyncio.create_subprocess_exec(
            "openssl", "s_client", "-connect", f"127.0.0.1:{echo.port}", "-tls1_3",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdin is not None
        await echo.until(lambda: echo.probes.tls_handshakes["SSL"] == 1)
        async with asyncio.timeout(30):
            with suppress(ConnectionError):
                while not echo.probes.connections_closed:
                    process.stdin.write(b"k\n")  # one for each read of its
                    await process.stdin.drain()
                    await asyncio.sleep(0.001)
        assert echo.probes.connections_closed == {"empty_records": 1}
        await echo.until(lambda: not echo.server.connections)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class FullPipe:
    """The pipe of a client that does not read what waits for it."""

    waiting_bytes, sent_bytes, room = 10, 0, 65_536

    def flush(self) -> bool:
        return False


class ColdFile:
    """A file of which nothing is in the page cache."""

    path = "cold"

    def read_into_if_cached(self, *_: object) -> int | None:
        return None


async def test_a_piece_of_a_cold_disk_is_fetched_once_whatever_the_client_sends_meanwhile() -> None:
    lane = InlineLanes()
    lane.held = True
    cache = PageCache(cast("DiskLane", lane))
    sender = TlsSender(
        cast("TlsPipe", FullPipe()),
        asyncio.get_running_loop(),
        cache,
        on_drained=lambda: None,
        on_broken=lambda _: None,
    )
    sender.send([FileSlice(cast("File", ColdFile()), 0, 1000)])
    for _ in range(3):
        sender.flush()
    assert cache.visits == 1
