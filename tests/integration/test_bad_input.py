"""Bytes that no client should send, to a broker process: each ends one connection and is counted.

One broker serves the whole module; after every test it must be unharmed.
"""

import contextlib
import socket
import struct
from collections.abc import Iterator

import pytest

from protocol.apis.api_versions import ApiVersionsRequest
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.clients.wire import WireClient, frame, request_frame
from tests.support.worlds.watched_broker import MIB, WatchedBroker

CLOSED = "horolog_connections_closed_total"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    with WatchedBroker(tmp_path_factory.mktemp("bad") / "data") as broker:
        yield broker
        broker.check_counters()


@pytest.fixture
def broker(shared: WatchedBroker) -> Iterator[WatchedBroker]:
    yield shared
    shared.check_unharmed()


def prefix(size: int) -> bytes:
    return struct.pack(">i", size)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(prefix(-1) + b"x" * 40, "frame_size", id="negative"),
        pytest.param(prefix(-(2**31)) + b"x" * 40, "frame_size", id="most-negative"),
        pytest.param(prefix(2**31 - 1) + b"x" * 40, "frame_size", id="2-GiB"),
        pytest.param(prefix(100 * MIB + 1) + b"x" * 40, "frame_size", id="above-limit"),
        pytest.param(prefix(0), "frame_size", id="empty"),
        pytest.param(prefix(3) + b"abc", "frame_size", id="too-short"),
        pytest.param(frame(b"\xff" * 300), "unsupported_version", id="all-ones"),
        pytest.param(frame(b"\x01\x00" * 150), "unsupported_version", id="unknown-api"),
        pytest.param(frame(bytes(range(256))), "malformed", id="garbage"),
        pytest.param(frame(b"\x00\x03\x00\x09" + b"\xff" * 4 + b"\x7f\xff"), "malformed", id="id"),
    ],
)
def test_frames_that_cannot_be_are_refused_at_once(
    broker: WatchedBroker, data: bytes, reason: str
) -> None:
    before = broker.metric(CLOSED, reason=reason)
    with broker.client() as client:
        client.send_raw(data)
        assert client.receive_all() == b""
    assert broker.metric(CLOSED, reason=reason) == before + 1


@pytest.mark.parametrize(
    ("protocol", "data", "answer"),
    [
        ("tls", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500, b""),
        ("http", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 400 Bad Request"),
        ("ssh", b"SSH-2.0-OpenSSH_9.6\r\n", b""),
    ],
)
def test_other_protocols_are_recognised(
    broker: WatchedBroker, protocol: str, data: bytes, answer: bytes
) -> None:
    with broker.client() as client:
        client.send_raw(data)
        assert client.receive_all().startswith(answer)
    assert broker.metric("horolog_foreign_protocol_connections_total", protocol=protocol) == 1


def test_thirty_half_sent_frames_of_90_mib_cost_no_memory(broker: WatchedBroker) -> None:
    before = broker.status("VmRSS")
    broker.forget_peak()
    clients = [broker.client() for _ in range(30)]
    for client in clients:
        client.send_raw(prefix(90 * MIB) + b"\x00\x00\x00\x09" + b"\x00" * 1000)
    broker.check_unharmed()
    assert broker.status("VmHWM") - before < 40 * MIB
    for client in clients:
        client.close()


def test_requests_byte_by_byte_are_answered(broker: WatchedBroker) -> None:
    with broker.client() as client:
        for number, byte in enumerate(request_frame(MetadataRequest(topics=[]), 9, 7)):
            assert number < 100
            client.send_raw(bytes((byte,)))
        assert client.receive_frame()[:4] == b"\x00\x00\x00\x07"


def test_what_was_whole_before_the_garbage_is_answered(broker: WatchedBroker) -> None:
    with broker.client() as client:
        good = request_frame(ApiVersionsRequest(), 0, 9)
        client.send_raw(good + prefix(-5))
        assert client.receive_frame()[:4] == b"\x00\x00\x00\x09"
        assert client.receive_all() == b""


def test_a_client_that_vanishes_in_a_frame_is_forgotten(broker: WatchedBroker) -> None:
    for _ in range(20):
        client = broker.client()
        client.send_raw(prefix(5 * MIB) + b"\x00" * 300_000)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    broker.check_unharmed()
    assert broker.metric("horolog_connections") <= 2


@pytest.mark.parametrize(
    "data",
    [
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 50_000 + b"\r\n",
        b"\x00" * 1000 + b"\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFF\r\n",
        b"GET /%ff%00%0a HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=range(7),
)
def test_bad_http_on_the_http_port_is_answered_with_its_status(
    broker: WatchedBroker, data: bytes
) -> None:
    host, port = broker.process.facts["http"].split(":")
    with contextlib.closing(socket.create_connection((host, int(port)), timeout=20)) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(data)
        with contextlib.suppress(ConnectionResetError):
            status = sock.recv(12)
            assert status == b"" or status.split()[1].startswith(b"4")


# -- wide requests


def wide_metadata(count: int) -> bytes:
    topics = [MetadataRequestTopic(name=f"topic-{number}") for number in range(count)]
    return request_frame(MetadataRequest(topics=topics), 9)


def test_metadata_of_100_000_topics_holds_nobody_up(broker: WatchedBroker) -> None:
    broker.forget_peak()
    before = broker.status("VmRSS")
    with broker.client() as client:
        client.send_raw(wide_metadata(100_000))
        with broker.client() as other:
            assert other.call(MetadataRequest(topics=[]), 9).brokers
        assert len(client.receive_frame()) > 100_000
    assert broker.status("VmHWM") - before < 150 * MIB


def test_more_objects_than_a_request_may_hold_end_it(broker: WatchedBroker) -> None:
    with broker.client() as client:
        client.send_raw(wide_metadata(250_001))
        assert client.receive_all() == b""
    assert broker.metric(CLOSED, reason="malformed")


def test_a_claimed_array_without_its_bytes_ends_it(broker: WatchedBroker) -> None:
    header = b"\x00\x03\x00\x01\x00\x00\x00\x01\xff\xff"
    with broker.client() as client:
        client.send_raw(frame(header + prefix(2**31 - 1)))
        assert client.receive_all() == b""


def unknown_tags(count: int) -> bytes:
    return uvarint(count) + b"".join(uvarint(100 + number) + b"\x00" for number in range(count))


def uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@pytest.mark.parametrize(("count", "answered"), [(10, True), (5000, False), (500_000, False)])
@pytest.mark.parametrize("place", ["header", "body"])
def test_unknown_tagged_fields_are_stepped_over_or_refused(
    broker: WatchedBroker, place: str, count: int, answered: bool
) -> None:
    header = b"\x00\x12\x00\x04\x00\x00\x00\x01\xff\xff"
    many, none = unknown_tags(count), b"\x00"
    body = b"\x02t\x021"
    tags = (many, none) if place == "header" else (none, many)
    with broker.client() as client:
        client.send_raw(frame(header + tags[0] + body + tags[1]))
        assert bool(_answer(client)) is answered


def _answer(client: WireClient) -> bytes:
    try:
        return client.receive_frame()
    except ConnectionError:
        return b""
