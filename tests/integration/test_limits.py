"""Crowds, silence and slowness against a broker process: bounded, counted, unnoticed by others.

HOROLOG_IDLE_CONNECTIONS=10000 runs the idle crowd at the size of a release test.
"""

import contextlib
import os
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.apis.api_versions import ApiVersionsRequest
from protocol.apis.metadata import MetadataRequest
from tests.support.clients.wire import request_frame
from tests.support.worlds import broker_process
from tests.support.worlds.watched_broker import (
    MIB,
    WatchedBroker,
    fetch_from,
    produce_to,
    small_batch,
)

IDLE = int(os.environ.get("HOROLOG_IDLE_CONNECTIONS", "2000"))
PER_ADDRESS = 900
HELLO = request_frame(ApiVersionsRequest(), 0)


@pytest.fixture(autouse=True, scope="module")
def open_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(broker: WatchedBroker, number: int = 0, receive_bytes: int = 0) -> socket.socket:
    """A connection from 127.0.0.2 and up, a few hundred from each address."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
    if receive_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    sock.bind((f"127.0.0.{2 + number // PER_ADDRESS}", 0))
    sock.settimeout(20)
    sock.connect((broker.host, broker.port))
    return sock


IP_BIND_ADDRESS_NO_PORT = 24


@contextlib.contextmanager
def crowd(broker: WatchedBroker, size: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(contextlib.closing(connect(broker, number)))
            for number in range(size)
        ]


def slowest_of(broker: WatchedBroker, calls: int) -> float:
    """Seconds of the slowest of so many calls of a client that does its work as always."""
    slowest = 0.0
    with broker.client() as client:
        for _ in range(calls):
            began = time.monotonic()
            assert produce_to(client, small_batch(), acks=1).error_code == 0
            slowest = max(slowest, time.monotonic() - began)
        assert fetch_from(client).responses[0].partitions[0].records
    return slowest


def is_closed(sock: socket.socket) -> bool:
    with contextlib.suppress(ConnectionError):
        return sock.recv(1) == b""
    return True


def test_a_crowd_of_idle_connections_costs_little_and_disturbs_nobody(tmp_path: Path) -> None:
    limits = {"max.connections": str(IDLE + 100)}
    with WatchedBroker(tmp_path / "data", limits) as broker:
        broker.make_topic("t")
        slowest_of(broker, 200)
        before = broker.status("VmRSS")
        with crowd(broker, IDLE) as idle:
            for sock in idle:
                sock.sendall(HELLO)
            for sock in idle:
                assert sock.recv(4, socket.MSG_WAITALL)
            assert broker.metric("horolog_connections") >= IDLE
            assert slowest_of(broker, 200) < 1.0
            assert broker.status("VmRSS") - before < 200 * MIB * IDLE / 10_000 + 10 * MIB
            broker.check_unharmed()
        broker.check_unharmed()


def test_connections_beyond_the_limits_are_refused_and_counted(tmp_path: Path) -> None:
    limits = {"max.connections": "60", "max.connections.per.ip": "40"}
    refused = "horolog_connections_refused_total"
    with WatchedBroker(tmp_path / "data", limits) as broker:
        with broker.client() as settled:
            settled.call(MetadataRequest(topics=[]), 9)
            with crowd(broker, 45) as many:
                assert all(is_closed(sock) for sock in many[40:])
                assert broker.metric(refused, reason="max_connections_per_ip") == 5
                more = [connect(broker, PER_ADDRESS + number) for number in range(30)]
                assert all(is_closed(sock) for sock in more[19:])
                assert broker.metric(refused, reason="max_connections") == 11
                assert settled.call(MetadataRequest(topics=[]), 9).brokers
                for sock in more:
                    sock.close()
        broker.check_unharmed()
        with crowd(broker, 30) as again:
            again[29].sendall(HELLO)
            assert again[29].recv(4)


def test_connections_leave_the_logs_the_files_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = tmp_path / "few-files"
    few.write_text(f'#!/bin/sh\nulimit -n 300\nexec {broker_process.HOROLOG} "$@"\n')
    few.chmod(0o755)
    monkeypatch.setattr(broker_process, "HOROLOG", few)
    with WatchedBroker(tmp_path / "data") as broker:
        broker.make_topic("t", 20)
        with broker.client() as client, crowd(broker, 400) as many:
            assert is_closed(many[-1])
            for partition in range(20):
                assert produce_to(client, small_batch(), partition=partition).error_code == 0
            refused = "horolog_connections_refused_total"
            assert broker.metric(refused, reason="open_files") > 100
        broker.check_unharmed()


def test_a_flood_of_short_connections_leaves_nothing_behind(tmp_path: Path) -> None:
    with WatchedBroker(tmp_path / "data") as broker:
        broker.check_unharmed()
        files = len(os.listdir(f"/proc/{broker.process.pid}/fd"))
        for number in range(1500):
            connect(broker, number).close()
        broker.check_unharmed()
        assert broker.metric("horolog_connections") <= 1
        assert len(os.listdir(f"/proc/{broker.process.pid}/fd")) <= files + 5


def test_slow_senders_hold_no_memory_and_nobody_up(tmp_path: Path) -> None:
    with WatchedBroker(tmp_path / "data") as broker:
        broker.make_topic("t")
        slowest_of(broker, 50)
        before = broker.status("VmRSS")
        with crowd(broker, 500) as slow:
            for byte in request_frame(MetadataRequest(topics=[]), 9)[:8]:
                for sock in slow:
                    sock.sendall(bytes((byte,)))
            assert slowest_of(broker, 100) < 1.0
            assert broker.status("VmRSS") - before < 30 * MIB
        broker.check_unharmed()


def test_slow_readers_are_held_back_themselves(tmp_path: Path) -> None:
    """Each asks for 1,000 answers of 20 KB and reads nothing."""
    with WatchedBroker(tmp_path / "data") as broker:
        broker.make_topic("wide", 300)
        broker.make_topic("t")
        with broker.client() as client:
            produce_to(client, small_batch(b"x" * 1_000_000))
        asks = request_frame(MetadataRequest(topics=None), 9) * 1000
        slowest_of(broker, 50)
        broker.forget_peak()
        before = broker.status("VmRSS")
        readers = [connect(broker, number, receive_bytes=4096) for number in range(10)]
        for sock in readers:
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                sock.send(asks)
        assert slowest_of(broker, 100) < 2.0
        assert broker.metric("horolog_network_queued_bytes") < 10 * 9 * MIB
        assert broker.status("VmHWM") - before < 256 * MIB
        for sock in readers:
            sock.close()
        broker.check_unharmed()


def test_who_connects_too_often_is_turned_away_and_others_are_not(tmp_path: Path) -> None:
    limits = {"horolog.max.connection.rate.per.ip": "2"}
    with WatchedBroker(tmp_path / "data", limits) as broker:
        with crowd(broker, 60) as many:
            assert sum(is_closed(sock) for sock in many[-20:]) > 10
            refused = "horolog_connections_refused_total"
            assert broker.metric(refused, reason="max_connection_rate_per_ip") > 10
            with contextlib.closing(connect(broker, PER_ADDRESS)) as other:
                other.sendall(HELLO)
                assert other.recv(4)
        broker.check_unharmed()


def test_large_requests_of_all_clients_together_are_bounded(tmp_path: Path) -> None:
    limits = {"queued.max.request.bytes": str(8 * MIB)}
    with WatchedBroker(tmp_path / "data", limits) as broker:
        broker.make_topic("t")
        with contextlib.ExitStack() as stack:
            for number in range(12):
                sock = stack.enter_context(contextlib.closing(connect(broker, number)))
                with contextlib.suppress(OSError):
                    sock.sendall((4 * MIB).to_bytes(4, "big") + bytes(2 * MIB))
            broker.wait_for("horolog_connections_closed_total", reason="request_memory")
            assert broker.metric("horolog_network_request_buffer_bytes") <= 8 * MIB
            with broker.client() as client:
                assert produce_to(client, small_batch()).error_code == 0
        broker.check_unharmed()
