"""A client that does its work while others attack: a process of its own, which measures itself.

It writes a record every few milliseconds on one connection with TLS, and logs in by SCRAM on new
ones; it says how long each takes, and what fails, when it is asked.
"""

import ssl
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

from broker.security.credentials import Mechanism
from protocol.records.builder import build_batch
from tests.support.attacks.target import ADMIN, PASSWORD, Stranger, Target, trusting, wrapped
from tests.support.clients.wire import WireClient
from tests.support.logins import clients

TOPIC = "others"
PAUSE_SECONDS = 0.004
LOG_IN_EVERY_SECONDS = 0.25
SCRAM = Mechanism.SCRAM_SHA_256


class Seen(NamedTuple):
    """Seconds of each request and log-in since the bystander was asked last, and what failed."""

    requests: list[float]
    log_ins: list[float]
    errors: list[str]


class Bystander:
    """The process. A context manager."""

    def __init__(self, target: Target) -> None:
        """It begins at once."""
        context = get_context("fork")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_live, args=(target, theirs), daemon=True)
        self._process.start()
        self.seen()

    def seen(self) -> Seen:
        """All since the last time."""
        self._ours.send("seen")
        if not self._ours.poll(60):
            raise TimeoutError("the bystander waited for a minute")
        found: Seen = self._ours.recv()
        return found

    def close(self) -> None:
        """It ends."""
        self._process.kill()
        self._process.join()


def _live(target: Target, pipe: Connection) -> None:
    tls, seen, client, next_log_in = trusting(target), Seen([], [], []), None, 0.0
    records = bytes(build_batch([(time.time_ns() // 1_000_000, b"k", b"v" * 100)]))
    while True:
        if pipe.poll(PAUSE_SECONDS):
            pipe.recv()
            pipe.send(seen)
            seen = Seen([], [], [])
        try:
            client = client or _log_in(target, tls)
            seen.requests.append(_write(client, records))
            if time.monotonic() > next_log_in:
                began = time.monotonic()
                _log_in(target, tls).close()
                seen.log_ins.append(time.monotonic() - began)
                next_log_in = time.monotonic() + LOG_IN_EVERY_SECONDS
        except (OSError, AssertionError) as error:
            seen.errors.append(repr(error))
            client = None


def _write(client: Stranger, records: bytes) -> float:
    part = [{"index": 0, "records": records}]
    topics = [{"name": TOPIC, "partition_data": part}]
    began = time.monotonic()
    answer = client.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=topics)
    code = answer.responses[0].partition_responses[0].error_code
    assert code == 0, f"Produce is answered {code}"
    return time.monotonic() - began


def _log_in(target: Target, tls: ssl.SSLContext) -> Stranger:
    bare = WireClient("127.0.0.1", target.secure, timeout_seconds=30)
    client = Stranger.over(wrapped(tls, bare.socket))
    assert client.shake(SCRAM.sasl_name) == 0
    first = clients.scram_first(ADMIN, f"{time.monotonic_ns():x}")
    _, challenge = client.show(first)
    code, _ = client.show(clients.scram_final(SCRAM, PASSWORD.encode(), first, challenge))
    assert code == 0, f"SaslAuthenticate is answered {code}"
    return client
