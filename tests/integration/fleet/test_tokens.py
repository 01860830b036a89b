"""Users and delegation tokens of a fleet: made on one node, they count on every node."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from protocol.apis import metadata
from protocol.apis.expire_delegation_token import ExpireDelegationTokenRequest
from tests.integration.test_delegation_tokens import (
    MECHANISM,
    _closed_clients,
    alice_of,
    by_token,
    is_cut_off,
    made,
)
from tests.integration.test_sasl import PASSWORD
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.ports import free_ports
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.node_process import NodeFailed

__all__ = ["_closed_clients"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
NODES = (1, 2)
NEWS_SECONDS = 30
"""Most that news of one node take to another, on a machine with other work."""


class Secured:
    """A fleet with a listener for administrators and one that asks for a log-in."""

    def __init__(self, brokers: FleetOfBrokers) -> None:
        self.brokers = brokers
        self._plain, self._sasl = free_ports(2), free_ports(2)

    def start(self, node_id: int) -> Any:
        """The node; `bootstrap` asks for a log-in."""
        plain, sasl = self._plain[node_id - 1], self._sasl[node_id - 1]
        listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}"
        self._start(node_id, listeners)
        return SimpleNamespace(bootstrap=f"127.0.0.1:{sasl}", plain=f"127.0.0.1:{plain}")

    def start_closed(self, node_id: int) -> Any:
        """The node, all of whose listeners ask for a log-in."""
        sasl = self._sasl[node_id - 1]
        self._start(node_id, f"SASL_PLAINTEXT://127.0.0.1:{sasl}")
        return SimpleNamespace(bootstrap=f"127.0.0.1:{sasl}")

    def _start(self, node_id: int, listeners: str) -> None:
        self.brokers.start(node_id, {
            "listeners": listeners,
            "sasl.enabled.mechanisms": MECHANISM,
            "delegation.token.secret.key": "a secret of tests",
        })  # fmt: skip


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[Secured]:
    with some_brokers(tmp_path, both, ()) as brokers:
        yield Secured(brokers)


def add_alice(node: Any) -> None:
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsert = UserScramCredentialUpsertion("alice", credential, PASSWORD.encode())
    admin = AdminClient({"bootstrap.servers": node.plain})
    for each in admin.alter_user_scram_credentials([upsert]).values():
        each.result(30)


def test_a_token_of_one_node_is_a_session_on_another_until_it_ends(fleet: Secured) -> None:
    """Also for a node that comes later, which knows users and tokens with its first answer."""
    first, second = (fleet.start(each) for each in NODES)
    add_alice(first)
    alice = alice_of(first)
    token = made(alice)
    assert token.error_code == 0
    until(lambda: by_token(second, token)[1].error_code == 0)
    session, _ = by_token(second, token)
    assert session.call(metadata.MetadataRequest(topics=[]), 1).brokers

    fleet.brokers.kill(2)
    fleet.brokers.lose_disk(2)
    second = fleet.start(2)
    session, answer = by_token(second, token)
    assert answer.error_code == 0

    ended = alice.call(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
    assert ended.error_code == 0
    assert is_cut_off(session, NEWS_SECONDS)
    assert by_token(second, token)[1].error_code != 0
    assert by_token(first, token)[1].error_code != 0


def test_a_node_with_a_new_disk_has_the_users_that_its_fleet_has(fleet: Secured) -> None:
    """Nobody else could come in; a fleet without users refuses such a node, and says why."""
    with pytest.raises(NodeFailed, match="nobody could connect"):
        fleet.start_closed(2)
    first = fleet.start(1)
    add_alice(first)
    second = fleet.start_closed(2)
    fleet.brokers.kill(2)
    fleet.brokers.lose_disk(2)
    second = fleet.start_closed(2)
    assert alice_of(second).call(metadata.MetadataRequest(topics=[]), 1).brokers
