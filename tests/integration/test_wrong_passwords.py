"""Many wrong passwords at one time: each is refused, and who is in is served meanwhile."""

import asyncio
import base64
import threading
import time
from pathlib import Path

from protocol.apis import metadata, sasl_authenticate, sasl_handshake
from tests.integration.test_sasl import PASSWORD, SETTINGS, add_user
from tests.support.clients.wire import AsyncWireClient, WireClient
from tests.support.worlds.broker_process import start_broker

GUESSES = 1000


async def _say(client: AsyncWireClient, token: bytes) -> int:
    request = sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token)
    answer = await client.call(request, 2)
    return int(answer.error_code)


async def _guess(host: str, port: int, number: int) -> int:
    """One wrong password, from one of 250 addresses; the code, or 0 when it was cut off."""
    address = f"127.0.1.{number % 250 + 1}"
    reader, writer = await asyncio.open_connection(host, port, local_addr=(address, 0))
    client = AsyncWireClient(reader, writer)
    try:
        mechanism = "PLAIN" if number % 2 else "SCRAM-SHA-256"
        await client.call(sasl_handshake.SaslHandshakeRequest(mechanism=mechanism), 1)
        if number % 2:
            return await _say(client, b"\0alice\0guess%d" % number)
        nonce = b"r=abc"
        request = sasl_authenticate.SaslAuthenticateRequest(auth_bytes=b"n,,n=alice," + nonce)
        first = (await client.call(request, 2)).auth_bytes
        proof = base64.b64encode(bytes(32))
        return await _say(client, b"c=biws," + bytes(first).partition(b",")[0] + b",p=" + proof)
    except (ConnectionError, asyncio.IncompleteReadError):
        return 0
    finally:
        await client.close()


class Bystander(threading.Thread):
    """A client that was let in before: it asks again and again, from a thread of its own."""

    def __init__(self, client: WireClient) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.over = threading.Event()
        self._client = client

    def run(self) -> None:
        """Asks until it is over, and keeps the seconds of each answer."""
        while not self.over.wait(0.005):
            began = time.perf_counter()
            self._client.call(metadata.MetadataRequest(topics=[]), 1)
            self.waits.append(time.perf_counter() - began)

    def close(self) -> None:
        """Waits for its last answer and closes its connection."""
        self.over.set()
        self.join()
        self._client.close()


async def _all_guesses(host: str, port: int) -> list[int]:
    return await asyncio.gather(*(_guess(host, port, number) for number in range(GUESSES)))


def _let_in(host: str, port: int) -> WireClient:
    client = WireClient(host, port)
    client.call(sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    token = f"\0alice\0{PASSWORD}".encode()
    answer = client.call(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token), 2)
    assert answer.error_code == 0
    return client


def test_a_thousand_wrong_passwords_disturb_nobody(tmp_path: Path) -> None:
    add_user(tmp_path / "data", "alice", PASSWORD)
    with start_broker(tmp_path / "data", SETTINGS) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        bystander = Bystander(_let_in(host, int(port)))
        bystander.start()
        began = time.perf_counter()
        try:
            codes = asyncio.run(_all_guesses(host, int(port)))
        finally:
            bystander.close()
        took = time.perf_counter() - began
    assert set(codes) <= {0, 58}
    assert codes.count(58) > GUESSES // 2
    middle = sorted(bystander.waits)[len(bystander.waits) // 2]
    print(f"{len(bystander.waits)} answers, median {middle * 1000:.1f} ms of {took:.2f} s")
    assert middle < took / 20, "it waits for its turn among strangers, not behind them all"
