"""The image has the libraries of tokens and key stores, and the authorities of the system."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from tests.support.clients.certificates import Authority
from tests.support.clients.containers import HARDENED, IMAGE, Container, docker
from tests.support.clients.issuer import AUDIENCE, NAME, Issuer, key_of
from tests.support.ports import free_port

ISSUER = Issuer(key_of("RSA", "rsa"), key_of())
AUTHORITIES = "import ssl; print(ssl.create_default_context().cert_store_stats()['x509_ca'])"


def written_keys(folder: Path) -> Path:
    """A folder with the provider's public keys and the server's own, which user 10092 can read."""
    authority = Authority()
    server = authority.server()
    store = pkcs12.serialize_key_and_certificates(
        b"server", server.key, server.certificate, None, BestAvailableEncryption(b"changeit")
    )
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "jwks.json").write_text(json.dumps(ISSUER.published))
    (folder / "server.p12").write_bytes(store)
    authority.write(folder / "authority.pem")
    for file in folder.iterdir():
        file.chmod(0o644)
    return folder


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Settings of a client on the host, but for its token."""
    keys = written_keys(tmp_path_factory.mktemp("oauth") / "keys")
    port = free_port()
    variables = {
        "KAFKA_LISTENERS": "SASL_SSL://:9094",
        "HOROLOG_PUBLISHED_LISTENERS": f"SASL_SSL://localhost:{port}",
        "KAFKA_SSL_KEYSTORE_TYPE": "PKCS12",
        "KAFKA_SSL_KEYSTORE_LOCATION": "/keys/server.p12",
        "KAFKA_SSL_KEYSTORE_PASSWORD": "changeit",
        "KAFKA_SASL_ENABLED_MECHANISMS": "OAUTHBEARER",
        "KAFKA_SASL_OAUTHBEARER_JWKS_ENDPOINT_URL": "file:///keys/jwks.json",
        "KAFKA_SASL_OAUTHBEARER_EXPECTED_ISSUER": NAME,
        "KAFKA_SASL_OAUTHBEARER_EXPECTED_AUDIENCE": AUDIENCE,
    }
    options = [*HARDENED, "--publish", f"127.0.0.1:{port}:9094", "--volume", f"{keys}:/keys:ro"]
    for name, value in variables.items():
        options += ["--env", f"{name}={value}"]
    with Container.started(*options) as broker:
        broker.until_ready()
        yield {
            "bootstrap.servers": f"localhost:{port}",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(keys / "authority.pem"),
            "sasl.mechanism": "OAUTHBEARER",
            "log_level": 0,
        }


def administrator(client: dict[str, Any], token: str) -> AdminClient:
    settings: dict[str, Any] = {**client, "oauth_cb": lambda _: (token, time.time() + 300)}
    return AdminClient(settings)


@pytest.mark.parametrize("key", ISSUER.keys, ids=lambda key: key.kid)
def test_a_token_lets_in_from_outside_over_a_key_store_s_certificate(
    client: dict[str, Any], key: Any
) -> None:
    admin = administrator(client, ISSUER.token(key=key))
    admin.poll(0)
    admin.create_topics([NewTopic(f"by-{key.kid}", 1, 1)])[f"by-{key.kid}"].result(30)


def test_a_stranger_s_token_does_not(client: dict[str, Any]) -> None:
    admin = administrator(client, Issuer(key_of()).token())
    admin.poll(0)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=3)


def test_providers_are_checked_by_the_authorities_of_the_system() -> None:
    known = docker("run", "--rm", IMAGE, "python", "-c", AUTHORITIES)
    assert int(known) > 50
