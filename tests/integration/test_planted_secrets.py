"""Secrets of every kind, planted in a broker that is led through errors, are nowhere to be read."""

import base64
import os
import signal
import socket
import ssl
import subprocess
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from protocol.apis import create_delegation_token, sasl_authenticate, sasl_handshake
from tests.integration.test_sasl import add_user
from tests.support.clients.certificates import Authority
from tests.support.clients.wire import WireClient
from tests.support.ports import free_port
from tests.support.worlds.broker_process import HOROLOG, own_environment, start_broker
from tests.support.worlds.node_process import NodeProcess

SECRETS = {
    "password of a user": "planted-user-word",
    "password of a second user, by the wire": "planted-second-word",
    "wrong password": "planted-wrong-word",
    "password typed as a name": "planted-typed-name",
    "password of a key, in a file of properties": "planted-key-word",
    "password of a key, in the environment": "planted-env-word",
    "password of a key, by the wire": "planted-wire-word",
    "password of a key, in a misspelled line": "planted-misspelled-word",
    "JAAS text": "planted-jaas-word",
    "secret of delegation tokens": "planted-delegation-word",
    "token": "planted-token-0123456789",
    "wrong token": "planted-wrong-token-0123456789",
    "parameter of HTTP": "planted-parameter",
}
NAMES = ("CLEAR", "SAFE", "INLINE")
PROTOCOLS = "SAFE:SASL_SSL,INLINE:SSL,CLEAR:SASL_PLAINTEXT"
AUDIT_TOPIC = {"horolog.security.audit.topic": "security"}


@dataclass(frozen=True)
class Planted:
    """The broker, its place, its ports, and every text that nobody may see."""

    node: NodeProcess
    place: Path
    ports: dict[str, int]
    secrets: dict[str, str]

    @property
    def settings(self) -> Path:
        return self.place / "server.properties"

    def admin(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> AdminClient:
        return AdminClient(
            {
                "bootstrap.servers": f"127.0.0.1:{self.ports['CLEAR']}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": user,
                "sasl.password": password,
                "log_level": 0,
            }
        )

    @property
    def root(self) -> AdminClient:
        return self.admin("root", SECRETS["password of a user"])

    def found_in(self, text: str | bytes) -> list[str]:
        """Names of the secrets that a text has."""
        whole = text if isinstance(text, bytes) else text.encode()
        return [name for name, secret in self.secrets.items() if secret.encode() in whole]

    def http(self, method: str, path: str, **headers: str) -> str:
        connection = HTTPConnection(self.node.facts["http"], timeout=20)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return f"{answer.getheaders()} {answer.read().decode(errors='replace')}"
        finally:
            connection.close()


def in_one_line(pem: str) -> str:
    return pem.strip().replace("\n", " ")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    place = tmp_path_factory.mktemp("planted")
    authority = Authority()
    stored, inline = authority.server(), authority.server()
    stored.write(place / "stored.pem", SECRETS["password of a key, in a file of properties"])
    key = inline.key_pem(SECRETS["password of a key, in the environment"])
    (place / "secrets.properties").write_text(
        f"key={SECRETS['password of a key, in a file of properties']}\n"
    )
    (place / "token").write_text(SECRETS["token"] + "\n")
    (place / "server.properties").write_text(
        f"listener.name.safe.ssl.keystore.location={place}/stored.pem\n"
        f"listener.name.safe.ssl.key.password=${{file:{place}/secrets.properties:key}}\n"
        f"listener.name.inline.ssl.keystore.key={in_one_line(key)}\n"
        "listener.name.inline.ssl.keystore.certificate.chain="
        f"{in_one_line(inline.certificate_pem)}\n"
        "listener.name.inline.ssl.key.password=${env:PLANTED}\n"
        f"delegation.token.secret.key={SECRETS['secret of delegation tokens']}\n"
    )
    for file in place.iterdir():
        file.chmod(0o600)
    add_user(place / "data", "root", SECRETS["password of a user"])
    ports = {name: free_port() for name in NAMES}
    settings = {
        **AUDIT_TOPIC,
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": PROTOCOLS,
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN",
        "connection.failed.authentication.delay.ms": "0",
        "horolog.http.token.file": f"{place}/token",
        "horolog.security.audit.file": f"{place}/audit.jsonl",
    }
    options = ["--config", str(place / "server.properties"), "--log-level", "debug"]
    os.environ["PLANTED"] = SECRETS["password of a key, in the environment"]
    try:
        with start_broker(place / "data", settings, options=options) as node:
            planted = Planted(node, place, ports, {**SECRETS, "inline key": key.splitlines()[3]})
            planted.secrets["token of delegation"] = delegated(planted)
            lead_through_errors(planted)
            yield planted
    finally:
        del os.environ["PLANTED"]


def delegated(planted: Planted) -> str:
    """The HMAC of a token of root's, as a client writes it for a password."""
    login = b"\0root\0" + SECRETS["password of a user"].encode()
    with WireClient("127.0.0.1", planted.ports["CLEAR"], timeout_seconds=20) as client:
        client.call(sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"), 1)
        answer = client.call(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=login), 2)
        assert answer.error_code == 0
        request = create_delegation_token.CreateDelegationTokenRequest(max_lifetime_ms=-1)
        made = client.call(request, 3)
    assert made.error_code == 0
    return base64.b64encode(made.hmac).decode()


def lead_through_errors(planted: Planted) -> None:
    """Everything that may be logged, counted or answered."""
    fail_to_log_in(planted)
    change_by_wire(planted)
    change_by_http(planted)
    send_nonsense(planted)
    reload_wrong_files(planted)


def fail_to_log_in(planted: Planted) -> None:
    wrong = SECRETS["wrong password"]
    for mechanism in ("SCRAM-SHA-256", "PLAIN"):
        for user in ("root", SECRETS["password typed as a name"]):
            with pytest.raises(KafkaException):
                planted.admin(user, wrong, mechanism).list_topics(timeout=1)
        right = planted.admin("root", SECRETS["password of a user"], mechanism)
        right.list_topics(timeout=20)


def change_by_wire(planted: Planted) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    second = SECRETS["password of a second user, by the wire"].encode()
    change = UserScramCredentialUpsertion("second", info, second)
    root = planted.root
    root.alter_user_scram_credentials([change])["second"].result(20)
    word, jaas = SECRETS["password of a key, by the wire"], SECRETS["JAAS text"]
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="{jaas}";'
    for kind, name in ((ResourceType.BROKER, "1"), (ResourceType.TOPIC, "security")):
        for key, value in (
            ("listener.name.safe.ssl.key.password", word),
            ("ssl.keystore.key", word),
            ("listener.name.safe.plain.sasl.jaas.config", login),
            ("sasl.jaas.config", login),
            ("my.own.password", word),
            ("log.retention.ms", word),
        ):
            entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(kind, name, incremental_configs=[entry])
            (outcome,) = root.incremental_alter_configs([resource]).values()
            with pytest.raises(KafkaException):
                outcome.result(20)


def change_by_http(planted: Planted) -> None:
    wrong, word = SECRETS["wrong token"], SECRETS["parameter of HTTP"]
    basic = base64.b64encode(f"root:{SECRETS['wrong password']}".encode()).decode()
    for authorization in (f"Bearer {SECRETS['token']}", f"Bearer {wrong}", f"Basic {basic}"):
        planted.http("POST", "/api/clock/confirm", Authorization=authorization)
        planted.http("POST", f"/api/clock/confirm?password={word}", Authorization=authorization)
    planted.http("POST", f"/api/no/such/path?{word}={word}")


def send_nonsense(planted: Planted) -> None:
    """Frames and tokens that make no sense, with a secret in them."""
    word = SECRETS["wrong password"].encode()
    for token in (b"\0root\0" + word + b"\0more", word, b"n,,n=root,r=" + word + b",m=x"):
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            with WireClient("127.0.0.1", planted.ports["CLEAR"], timeout_seconds=20) as client:
                client.call(sasl_handshake.SaslHandshakeRequest(mechanism=mechanism), 1)
                request = sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token)
                assert client.call(request, 2).error_code == 58
    for name in NAMES:
        with socket.create_connection(("127.0.0.1", planted.ports[name]), 20) as raw:
            raw.sendall(len(word).to_bytes(4, "big") + word)
            raw.settimeout(20)
            try:
                raw.recv(1)
            except ConnectionError:
                continue
    trusting = ssl.create_default_context()
    address = ("127.0.0.1", planted.ports["INLINE"])
    with socket.create_connection(address, 20) as raw, pytest.raises(ssl.SSLError):
        trusting.wrap_socket(raw, server_hostname="localhost")


def reload_wrong_files(planted: Planted) -> None:
    right = planted.settings.read_text()
    word = SECRETS["password of a key, in a misspelled line"]
    for wrong in (
        f"ssl.kye.password={word}\n",
        f"ssl.key.password=${{file:{planted.place}/secrets.properties:no}}\n",
        f"max.connections=${{file:{planted.place}/secrets.properties:key}}\n",
        "max.connections=none\n",
        "ssl.key.password=${env:PLANTED\n",
    ):
        reloaded(planted, right + wrong)
    (planted.place / "secrets.properties").write_text("key=planted-key-word-changed\n")
    reloaded(planted, right)


def reloaded(planted: Planted, text: str) -> None:
    before = planted.node.log.read_text().count("reloaded")
    planted.settings.write_text(text)
    os.kill(planted.node.pid, signal.SIGHUP)
    deadline = time.monotonic() + 20
    while planted.node.log.read_text().count("reloaded") == before:
        assert time.monotonic() < deadline, "it is not reloaded"
        time.sleep(0.05)


def test_not_in_log_and_audit(planted: Planted) -> None:
    log, audit = planted.node.log.read_text(), (planted.place / "audit.jsonl").read_text()
    assert "authentication_failed" in log
    assert "settings_not_reloaded" in log
    assert '"resource":"broker 1"' in audit
    assert "listener.name.safe.ssl.key.password=[hidden]" in audit
    assert planted.found_in(log) == []
    assert planted.found_in(audit) == []


def test_not_in_describe_answers(planted: Planted) -> None:
    root, entries = planted.root, {}
    for kind, name in ((ResourceType.BROKER, "1"), (ResourceType.TOPIC, "security")):
        (described,) = root.describe_configs([ConfigResource(kind, name)]).values()
        entries.update(described.result(20))
    secret = [each for name, each in entries.items() if name.endswith(("password", "keystore.key"))]
    assert len(secret) >= 5
    assert all(each.is_sensitive and each.value is None for each in secret)
    told = repr([(n, e.value, [s.value for s in e.synonyms.values()]) for n, e in entries.items()])
    assert planted.found_in(told) == []
    users = root.describe_user_scram_credentials()
    assert planted.found_in(repr({k: vars(v) for k, v in users.result(20).items()})) == []


def test_not_in_pages_and_metrics(planted: Planted) -> None:
    paths = ["/", "/metrics", "/metrics/topics", "/readyz?verbose", "/time", "/api/openapi.json"]
    subjects = ("config", "topics", "groups", "clock", "starts", "dirty", "scrub", "transactions")
    paths += [f"/api/{subject}" for subject in subjects]
    for path in paths:
        assert planted.found_in(planted.http("GET", path)) == [], path


def test_not_in_the_bundle_nor_in_what_commands_print(planted: Planted) -> None:
    bundle = planted.place / "bundle.tar.gz"
    log, data = str(planted.node.log), str(planted.place / "data")
    file = str(planted.settings)
    for command in (
        ["bundle", "--output", str(bundle), "--http", planted.node.facts["http"],
         "--config", file, "--log", log, "--data-dir", data],
        ["config", "explain", "--config", file],
        ["config", "explain", "ssl.key.password", "--config", file],
        ["config", "explain", "listener.name.safe.ssl.key.password", "--config", file],
        ["config", "check", file],
        ["config", "unset", "--data-dir", data],
    ):  # fmt: skip
        done = subprocess.run(
            [str(HOROLOG), *command], capture_output=True, check=False, timeout=120,
            env=own_environment(),
        )  # fmt: skip
        assert planted.found_in(done.stdout + done.stderr) == [], command
    with tarfile.open(bundle) as archive:
        for entry in archive.getmembers():
            content = archive.extractfile(entry)
            assert content is not None
            assert planted.found_in(content.read()) == [], entry.name


def test_not_in_the_process_list(planted: Planted) -> None:
    process = Path("/proc", str(planted.node.pid))
    assert planted.found_in((process / "cmdline").read_bytes()) == []
    assert planted.found_in((process / "comm").read_bytes()) == []


def test_not_in_files_of_the_data_directory(planted: Planted) -> None:
    files = [each for each in (planted.place / "data").rglob("*") if each.is_file()]
    assert len(files) > 5
    for each in files:
        assert planted.found_in(each.read_bytes()) == [], each
        if "users" in each.name:
            assert each.stat().st_mode & 0o077 == 0
