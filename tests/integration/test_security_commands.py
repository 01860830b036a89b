"""`horolog users`, `acls` and `tokens` over the wire: every way to log in, and what is refused."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker.cli.main import horolog
from broker.daemon.app import Broker
from tests.support.clients.certificates import Authority
from tests.support.worlds.app import running_broker

AUTHORITY = Authority()
PASSWORD = 'a "quoted, =one\\'
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SETTINGS = {
    "listeners": ",".join(
        f"{each}://127.0.0.1:0" for each in ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
    ),
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
    "delegation.token.secret.key": "a secret of tests",
}


class Desk:
    """A broker, and a person with files of client settings."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.folder = folder

    def listener(self, protocol: str) -> list[str]:
        return ["--bootstrap", str(self.broker.services.server.listeners[protocol].dialled)]

    def file(self, **settings: str) -> Path:
        """Client settings, underscores for dots, that nobody else can read."""
        lines = [f"{key.replace('_', '.')}={value}" for key, value in settings.items()]
        file = self.folder / "client.properties"
        file.write_text("\n".join(lines).replace("\\", "\\\\") + "\n")
        file.chmod(0o600)
        return file

    def login(
        self, user: str, password: str = PASSWORD, mechanism: str = "SCRAM-SHA-512",
        protocol: str = "SASL_PLAINTEXT", *, by_token: bool = False,
    ) -> list[str]:  # fmt: skip
        """Options of a command that logs in."""
        quoted = password.replace("\\", "\\\\").replace('"', '\\"')
        token = ' tokenauth="true"' if by_token else ""
        jaas = f'{MODULE} required username="{user}" password="{quoted}"{token};'
        file = self.file(
            security_protocol=protocol,
            sasl_mechanism=mechanism,
            sasl_jaas_config=jaas,
            ssl_truststore_location=str(self.folder / "authority.pem"),
        )
        return [*self.listener(protocol), "--command-config", str(file)]

    async def run(
        self, *arguments: str, at: list[str] | None = None, given: str = "", status: int = 0
    ) -> str:
        """Output, or the error, of a command that must end with this status."""
        asked = [*arguments, *(at or self.listener("PLAINTEXT"))]
        done = await asyncio.to_thread(
            CliRunner().invoke, horolog, asked, input=given, standalone_mode=False
        )
        ended = getattr(done.exception, "status", done.return_value)
        assert ended == status, (asked, done.output, done.exception)
        return f"{done.stdout}{done.exception}" if status else done.stdout

    async def add_user(self, name: str) -> str:
        return await self.run("users", "add", name, given=f"{PASSWORD}\n")


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    AUTHORITY.write(tmp_path / "authority.pem")
    server = AUTHORITY.server().write(tmp_path / "server.pem")
    settings = SETTINGS | {"ssl.keystore.location": str(server)}
    async with running_broker(tmp_path / "data", settings) as broker:
        yield Desk(broker, tmp_path)


async def test_users_are_added_shown_and_removed(desk: Desk) -> None:
    assert "may log in by SCRAM-SHA-256, SCRAM-SHA-512" in await desk.add_user("alice")
    rows = (await desk.run("users", "list")).splitlines()[1:]
    assert [each.split()[1] for each in rows] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    one = ("users", "remove", "alice", "--mechanism", "SCRAM-SHA-256")
    assert "no longer logs in by SCRAM-SHA-256." in await desk.run(*one)
    await desk.run("users", "remove", "alice")
    assert "there is no user alice" in await desk.run("users", "remove", "alice", status=1)
    assert desk.broker.services.users.rows == {}


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_every_way_to_log_in(desk: Desk, mechanism: str, protocol: str) -> None:
    await desk.add_user("admin")
    at = desk.login("admin", mechanism=mechanism, protocol=protocol)
    assert "admin" in await desk.run("users", "list", at=at)
    at = desk.login("admin", "wrong", mechanism, protocol)
    refused = await desk.run("users", "list", at=at, status=1)
    assert "Authentication failed" in refused
    assert "wrong" not in refused


async def test_tls_without_a_user(desk: Desk) -> None:
    authority = str(desk.folder / "authority.pem")
    file = desk.file(security_protocol="SSL", ssl_truststore_location=authority)
    at = [*desk.listener("SSL"), "--command-config", str(file)]
    await desk.run("users", "list", at=at)
    Authority("another").write(desk.folder / "authority.pem")
    assert "no TLS with" in await desk.run("users", "list", at=at, status=2)


async def test_acls_decide_as_the_broker_does(desk: Desk) -> None:
    await desk.add_user("alice")
    await desk.run("acls", "add", "alice", "read", "topic:orders")
    await desk.run("acls", "add", "*", "read", "topic:orders", "--deny", "--host", "10.0.0.9")
    listed = await desk.run("acls", "list", "--resource", "topic:orders")
    assert len(listed.splitlines()) == 3
    check = ("acls", "check", "alice", "10.0.0.1", "read", "topic:orders")
    assert 'by: allow User:alice to read topic "orders"' in await desk.run(*check)
    denied = ("acls", "check", "alice", "10.0.0.9", "read", "topic:orders")
    assert "denied: by: deny User:*" in await desk.run(*denied, status=1)
    boss = ("acls", "check", "admin", "10.0.0.9", "read", "topic:orders")
    assert "one of super.users" in await desk.run(*boss)
    await desk.run("acls", "remove", "alice", "read", "topic:orders")
    assert "no entry allows it" in await desk.run(*check, status=1)
    as_alice = desk.login("alice")
    assert "authorization failed" in await desk.run("acls", "list", at=as_alice, status=1)


async def test_the_life_of_a_token(desk: Desk) -> None:
    await desk.add_user("alice")
    await desk.run("acls", "add", "alice", "describe", "cluster")
    at = desk.login("alice")
    made = json.loads(await desk.run("tokens", "create", "--renewer", "bob", "--json", at=at))
    assert made["owner"] == "alice"
    for shown in (
        await desk.run("tokens", "list", at=at),
        await desk.run("tokens", "renew", made["token"], "--for", "2h", at=at),
        await desk.run("tokens", "expire", made["token"], "--in", "1h", at=at),
    ):
        assert made["token"] in shown
        assert made["hmac"] not in shown
    by_token = desk.login(made["token"], made["hmac"], by_token=True)
    await desk.run("acls", "list", at=by_token)
    refused = await desk.run("tokens", "create", at=by_token, status=1)
    assert "No delegation tokens on this channel" in refused
    assert "has ended" in await desk.run("tokens", "expire", made["token"], at=desk.login("alice"))
    gone = await desk.run("tokens", "renew", made["token"], at=desk.login("alice"), status=1)
    assert "there is no token" in gone
    by_token = desk.login(made["token"], made["hmac"], by_token=True)
    assert "Authentication failed" in await desk.run("acls", "list", at=by_token, status=1)


async def test_a_token_is_shown_once_as_text(desk: Desk) -> None:
    await desk.add_user("alice")
    told = await desk.run("tokens", "create", "--max-lifetime", "90s", at=desk.login("alice"))
    token = desk.broker.services.tokens.all()[0]
    assert token.latest_ms - token.issued_ms == 90_000
    assert told.splitlines()[0].split() == ["token", token.token_id]


async def test_settings_that_cannot_work(desk: Desk, unused_tcp_port: int) -> None:
    at = desk.listener("SASL_PLAINTEXT")
    assert "no broker answers" in await desk.run("users", "list", at=at, status=2)
    nobody = ["--bootstrap", f"127.0.0.1:{unused_tcp_port}"]
    assert "no broker answers" in await desk.run("users", "list", at=nobody, status=2)
    wrong = ["--bootstrap", "nowhere"]
    assert "is no HOST:PORT" in await desk.run("users", "list", at=wrong, status=2)
    file = desk.file(security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI")
    at = [*at, "--command-config", str(file)]
    assert "sasl.mechanism: a listener with SASL wants" in await desk.run(
        "users", "list", at=at, status=2
    )
    at = desk.login("alice")
    (desk.folder / "client.properties").chmod(0o644)
    refused = await desk.run("users", "list", at=at, status=2)
    assert "every user of this machine can read sasl.jaas.config: chmod 600" in refused
