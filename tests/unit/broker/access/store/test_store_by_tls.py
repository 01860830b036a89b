"""A store that is reached by TLS: its certificate is checked, whatever the environment says."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.access.store.objects import open_store
from storage.tier.port import ObjectStore, StoreError
from tests.support.clients.certificates import Authority
from tests.support.tier.canned_server import Canned, canned_server
from tests.support.tier.s3_server import only_aws


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def server(authority: Authority, tmp_path: Path) -> Iterator[Canned]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.server().write(tmp_path / "server.pem"))
    with canned_server(tls) as canned:
        yield canned


def opened(server: Canned, **more: str) -> ObjectStore:
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    port = server.address.rpartition(":")[2]
    with only_aws({**keys, "AWS_ENDPOINT_URL": f"https://localhost:{port}", **more}):
        return open_store("s3://bucket/a")


@pytest.mark.parametrize("invalid", ["", "true"])
def test_a_certificate_of_nobody_is_not_trusted(server: Canned, invalid: str) -> None:
    store = opened(server, AWS_ALLOW_INVALID_CERTIFICATES=invalid or "false")
    with pytest.raises(StoreError, match="its certificate is not trusted"):
        store.put_new("a", b"1")
    assert server.seen == []


def test_an_authority_of_ones_own_is_trusted(
    server: Canned, authority: Authority, tmp_path: Path
) -> None:
    bundle = authority.write(tmp_path / "ca.pem")
    opened(server, AWS_CA_BUNDLE=str(bundle)).put_new("a", b"1")
    assert [seen.path for seen in server.seen] == ["/bucket/a/a"]
