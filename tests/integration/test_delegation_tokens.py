"""Delegation tokens on a SASL listener: log-ins by them, how their sessions end, and restarts."""

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scramp import ScramClient

from protocol.apis import metadata, sasl_authenticate, sasl_handshake
from protocol.apis.create_delegation_token import CreateDelegationTokenRequest
from protocol.apis.expire_delegation_token import ExpireDelegationTokenRequest
from tests.integration.test_sasl import PASSWORD, SETTINGS, add_user
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeFailed

MECHANISM = "SCRAM-SHA-256"
CONFIG = SETTINGS | {"delegation.token.secret.key": "a secret of tests"}


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    add_user(tmp_path / "data", "alice", PASSWORD)
    return tmp_path / "data"


@pytest.fixture
def node(data_dir: Path) -> Iterator[Any]:
    with start_broker(data_dir, CONFIG) as running:
        yield running


_opened: list[WireClient] = []


@pytest.fixture(autouse=True)
def _closed_clients() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


def opened(node: Any) -> WireClient:
    host, _, port = node.bootstrap.rpartition(":")
    _opened.append(WireClient(host, int(port)))
    return _opened[-1]


def log_in(client: WireClient, name: str, password: str, *, by_token: bool = False) -> Any:
    """The last answer of SaslAuthenticate."""
    assert client.call(sasl_handshake.SaslHandshakeRequest(mechanism=MECHANISM), 1).error_code == 0
    scram = ScramClient([MECHANISM], name, password)
    first = scram.get_client_first()
    if by_token:
        first += ",tokenauth=true"
        scram.client_first_bare += ",tokenauth=true"
    answer = client.call(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=first.encode()), 2)
    scram.set_server_first(bytes(answer.auth_bytes).decode())
    final = scram.get_client_final().encode()
    return client.call(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=final), 2)


def made(client: WireClient, lifetime_ms: int = -1) -> Any:
    request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=lifetime_ms)
    return client.call(request, 3)


def password_of(token: Any) -> str:
    return base64.b64encode(bytes(token.hmac)).decode()


def by_token(node: Any, token: Any) -> tuple[WireClient, Any]:
    client = opened(node)
    return client, log_in(client, token.token_id, password_of(token), by_token=True)


def alice_of(node: Any) -> WireClient:
    alice = opened(node)
    assert log_in(alice, "alice", PASSWORD).error_code == 0
    return alice


def is_cut_off(client: WireClient, within_seconds: float = 1) -> bool:
    """True when the broker ends the connection by itself in time."""
    client.socket.settimeout(within_seconds)
    try:
        return client.socket.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_a_token_is_a_session_of_its_owner_that_makes_no_other(node: Any) -> None:
    token = made(alice_of(node))
    client, answer = by_token(node, token)
    assert answer.error_code == 0
    rest_ms = token.expiry_timestamp_ms - time.time_ns() // 1_000_000
    assert rest_ms - 2000 < answer.session_lifetime_ms <= rest_ms + 2000
    assert client.call(metadata.MetadataRequest(topics=[]), 1).brokers
    refused = made(client)
    assert (refused.error_code, refused.principal_name) == (64, "alice")


def test_a_session_ends_with_its_token(node: Any) -> None:
    alice = alice_of(node)
    client, answer = by_token(node, made(alice, 700))
    assert 0 < answer.session_lifetime_ms <= 700
    assert client.call(metadata.MetadataRequest(topics=[]), 1).brokers
    time.sleep(0.8)
    with pytest.raises(ConnectionError):
        client.call(metadata.MetadataRequest(topics=[]), 1)
    assert alice.call(metadata.MetadataRequest(topics=[]), 1).brokers


def test_an_ended_token_lets_nobody_in(node: Any) -> None:
    token = made(alice_of(node), 300)
    time.sleep(0.4)
    assert by_token(node, token)[1].error_code == 58


@pytest.mark.parametrize("period_ms", [-1, 50])
def test_who_ends_a_token_ends_its_sessions(node: Any, period_ms: int) -> None:
    alice = alice_of(node)
    token = made(alice)
    client = by_token(node, token)[0]
    request = ExpireDelegationTokenRequest(hmac=bytes(token.hmac), expiry_time_period_ms=period_ms)
    assert alice.call(request, 2).error_code == 0
    time.sleep(0.1)
    if period_ms < 0:
        assert is_cut_off(client)
    else:
        with pytest.raises(ConnectionError):
            client.call(metadata.MetadataRequest(topics=[]), 1)
    assert by_token(node, token)[1].error_code == 58


def test_tokens_outlive_a_kill_and_end_with_another_secret(data_dir: Path) -> None:
    with start_broker(data_dir, CONFIG) as node:
        token = made(alice_of(node))
        node.kill()
    file = data_dir / "horolog-tokens.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert password_of(token) not in file.read_text()
    with start_broker(data_dir, CONFIG) as node:
        assert by_token(node, token)[1].error_code == 0
    other = CONFIG | {"delegation.token.secret.key": "another secret"}
    with start_broker(data_dir, other) as node:
        assert by_token(node, token)[1].error_code == 58
    with start_broker(data_dir, SETTINGS) as node:
        assert by_token(node, token)[1].error_code == 58
        assert made(alice_of(node)).error_code == 61


def test_tokens_that_cannot_be_read_refuse_the_start(data_dir: Path) -> None:
    with start_broker(data_dir, CONFIG) as node:
        made(alice_of(node))
    file = data_dir / "horolog-tokens.json"
    file.write_text(file.read_text().replace("alice", "mallo", 1))
    with pytest.raises(NodeFailed, match="checksum"):
        start_broker(data_dir, CONFIG)
