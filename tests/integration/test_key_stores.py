"""Stores of keys in PKCS12, made by openssl and by keytool, are what the PEM files are."""

import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from broker.security.certificates import Credentials, load_credentials
from config.errors import ConfigError
from config.sources import load
from config.store import ConfigStore
from storage.posix import real_env
from tests.support.clients.certificates import Authority, Signed

AUTHORITY = Authority()
SERVER = AUTHORITY.server()
PASSWORD = "changeit"
needs_keytool = pytest.mark.skipif(which("keytool") is None, reason="no Java on this machine")
MAKERS = ["openssl", pytest.param("keytool", marks=needs_keytool)]


def run(*arguments: object) -> None:
    subprocess.run(list(map(str, arguments)), check=True, capture_output=True, timeout=60)


def key_store(path: Path, maker: str, signed: Signed = SERVER, password: str = PASSWORD) -> Path:
    """With the chain, under an alias with a blank and capitals."""
    pem, made = signed.write(path / "server.pem"), path / "openssl.p12"
    run(
        "openssl", "pkcs12", "-export", "-in", pem, "-certfile", AUTHORITY.write(path / "ca.pem"),
        "-name", "My Server", "-out", made, "-passout", f"pass:{password}",
    )  # fmt: skip
    if maker == "openssl":
        return made
    of_java = path / "keytool.p12"
    run(
        "keytool", "-importkeystore", "-noprompt", "-srckeystore", made, "-srcstoretype", "PKCS12",
        "-srcstorepass", password, "-destkeystore", of_java, "-deststoretype", "PKCS12",
        "-deststorepass", password,
    )  # fmt: skip
    return of_java


def trust_store(path: Path, maker: str) -> Path:
    authority, made = AUTHORITY.write(path / "ca.pem"), path / f"{maker}-trust.p12"
    if maker == "openssl":
        run(
            "openssl", "pkcs12", "-export", "-nokeys", "-in", authority, "-out", made,
            "-passout", f"pass:{PASSWORD}",
        )  # fmt: skip
    else:
        run(
            "keytool", "-importcert", "-noprompt", "-alias", "The CA", "-file", authority,
            "-keystore", made, "-storetype", "PKCS12", "-storepass", PASSWORD,
        )  # fmt: skip
    return made


def settings(store: Path, **more: str) -> list[str]:
    named = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": PASSWORD,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    flags = ["listeners=SSL://127.0.0.1:0", *(f"{name}={text}" for name, text in named.items())]
    return [each for each in flags if not each.endswith("=")]


def loaded(flags: list[str]) -> Credentials:
    config = ConfigStore(load(flags=flags, environment={}).layers)
    env = real_env()
    return load_credentials(config.broker_config.listener_tls["SSL"], env.fs, env.clock.now_ms())


@pytest.mark.parametrize("maker", MAKERS)
def test_a_store_of_keys_and_one_of_trust_are_what_they_were_made_of(
    maker: str, tmp_path: Path
) -> None:
    store, trust = key_store(tmp_path, maker), trust_store(tmp_path, maker)
    found = loaded(
        settings(
            store,
            ssl_truststore_type="pkcs12",
            ssl_truststore_location=str(trust),
            ssl_truststore_password=PASSWORD,
            ssl_client_auth="required",
        )
    )
    of_pem = loaded([
        "listeners=SSL://127.0.0.1:0",
        f"ssl.keystore.location={SERVER.write(tmp_path / 'again.pem')}",
    ])  # fmt: skip
    assert found.certificate == of_pem.certificate
    assert len(found.context.get_ca_certs()) == 1
    assert loaded(settings(store)).source == loaded(settings(store)).source


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("password", ["a-guess", ""])
def test_a_wrong_password_is_told_without_it(maker: str, password: str, tmp_path: Path) -> None:
    store = key_store(tmp_path, maker)
    with pytest.raises(ConfigError, match="its password is another one") as refused:
        loaded(settings(store, ssl_keystore_password=password))
    assert str(store) in str(refused.value)
    assert "a-guess" not in str(refused.value).replace(str(store), "")


def test_a_store_without_a_key_or_with_an_expired_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no private key"):
        loaded(settings(trust_store(tmp_path, "openssl")))
    expired = key_store(tmp_path, "openssl", AUTHORITY.server(days=-1))
    with pytest.raises(ConfigError, match="expired"):
        loaded(settings(expired))
    of_keys = key_store(tmp_path, "openssl")
    of_keys.write_bytes(b"\xfe\xed\xfe\xed" + of_keys.read_bytes())
    with pytest.raises(ConfigError, match="JKS"):
        loaded(settings(of_keys))
    with pytest.raises(ConfigError, match=r"nowhere\.p12"):
        loaded(settings(tmp_path / "nowhere.p12"))


def test_a_store_without_password_must_not_be_readable_to_all(tmp_path: Path) -> None:
    store = key_store(tmp_path, "openssl", password="")
    store.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod"):
        loaded(settings(store, ssl_keystore_password=""))
    store.chmod(0o600)
    assert loaded(settings(store, ssl_keystore_password=""))


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["ssl.keystore.type=JKS"], "keytool -importkeystore"),
        (["ssl.truststore.type=JKS"], "keytool -importkeystore"),
        (["ssl.keystore.password=x", "ssl.keystore.location=a.pem"], "ssl.key.password"),
        (["ssl.truststore.password=x", "ssl.keystore.location=a.pem"], "have no password"),
        (["ssl.keystore.type=PKCS12", "ssl.keystore.key=x"], "is PEM"),
        (
            ["ssl.truststore.type=PKCS12", "ssl.truststore.certificates=x",
             "ssl.keystore.location=a.pem"],
            "are PEM",
        ),
    ],
)  # fmt: skip
def test_types_that_do_not_go_with_the_rest(flags: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        ConfigStore(load(flags=["listeners=SSL://:0", *flags], environment={}).layers)


def test_nothing_is_loaded_for_pem(tmp_path: Path) -> None:
    file = SERVER.write(tmp_path / "server.pem")
    code = f"""
import sys
from tests.integration.test_key_stores import loaded
for name in [each for each in sys.modules if each.partition('.')[0] == 'cryptography']:
    del sys.modules[name]
loaded(['listeners=SSL://127.0.0.1:0', 'ssl.keystore.location={file}'])
assert 'cryptography' not in sys.modules
"""
    run(sys.executable, "-c", code)
