"""Certificates that clients could not use refuse the start, with the file and the reason."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from broker.security.certificates import load_credentials
from broker.security.cipher_suites import OPENSSL_NAMES
from config.errors import ConfigError
from config.security.tls import TlsConfig
from storage.posix import real_env
from tests.support.clients.certificates import Authority

FS, CLOCK = real_env().fs, real_env().clock


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def load(**settings):
    return load_credentials(TlsConfig(**settings), FS, CLOCK.now_ms())


def refusal(**settings) -> str:
    with pytest.raises(ConfigError) as caught:
        load(**settings)
    return str(caught.value)


def test_a_file_with_key_and_chain_serves(authority: Authority, tmp_path: Path) -> None:
    signed = authority.server(days=3)
    found = load(keystore_location=str(signed.write(tmp_path / "s.pem")))
    assert (
        found.certificate.not_after_ms == signed.certificate.not_valid_after_utc.timestamp() * 1e3
    )
    assert found.certificate.subject == signed.certificate.subject.public_bytes()
    assert found.context.verify_mode is ssl.CERT_NONE
    assert found.context.num_tickets == 0


@pytest.mark.parametrize("password", ["", "a secret of many words"])
@pytest.mark.parametrize("separator", ["\n", " "])
def test_key_and_chain_may_stand_in_settings_in_one_line(
    authority: Authority, password: str, separator: str
) -> None:
    signed = authority.server()
    key, chain = (
        text.replace("\n", separator) for text in (signed.key_pem(password), signed.certificate_pem)
    )
    trusted = authority.pem.replace("\n", separator)
    found = load(
        keystore_key=key,
        keystore_certificate_chain=chain,
        key_password=password,
        truststore_certificates=trusted,
        client_auth="required",
    )
    assert found.context.verify_mode is ssl.CERT_REQUIRED
    assert len(found.context.get_ca_certs()) == 1


def test_what_cannot_serve_is_refused_with_file_and_reason(
    authority: Authority, tmp_path: Path
) -> None:
    signed, other, old = authority.server(), authority.server(), authority.server(days=-1)
    path = tmp_path / "s.pem"

    def of(text: str, **settings: str) -> str:
        path.write_text(text)
        path.chmod(0o600)
        found = refusal(keystore_location=str(path), **settings)
        assert str(path) in found
        return found

    good = signed.key_pem() + signed.certificate_pem
    assert "no private key" in of(signed.certificate_pem)
    assert "no certificate" in of(signed.key_pem())
    assert "two private keys" in of(good + other.key_pem())
    assert "does not fit" in of(signed.key_pem() + other.certificate_pem)
    assert "expired" in of(old.key_pem() + old.certificate_pem)
    assert "set ssl.key.password" in of(signed.key_pem("x1y2") + signed.certificate_pem)
    wrong = of(signed.key_pem("x1y2") + signed.certificate_pem, key_password="canary-77")
    assert "cannot be decrypted" in wrong
    assert "canary-77" not in wrong
    damaged = signed.certificate_pem.replace("MII", "MI!", 1)
    assert "certificate" in of(signed.key_pem() + damaged)
    path.write_text(good)
    path.chmod(0o644)
    assert "every user" in refusal(keystore_location=str(path))
    path.write_text(signed.key_pem("x1y2") + signed.certificate_pem)
    assert load(keystore_location=str(path), key_password="x1y2")
    assert "no such file" in refusal(keystore_location=str(tmp_path / "none")).lower()
    path.write_text(good)
    path.chmod(0o600)
    trust = tmp_path / "trust.pem"
    trust.write_text("nothing")
    assert "trust.pem" in refusal(keystore_location=str(path), truststore_location=str(trust))


def test_cipher_suites_are_those_named_and_fit_the_key(
    authority: Authority, tmp_path: Path
) -> None:
    of_ec = authority.server().write(tmp_path / "ec.pem")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    of_rsa = authority.server(key=key).write(tmp_path / "rsa.pem")

    def suites(path: Path, names: str, **settings):
        return load(keystore_location=str(path), cipher_suites=names, **settings).context

    both = suites(of_rsa, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")
    assert both.maximum_version is ssl.TLSVersion.TLSv1_2
    found = {each["name"] for each in both.get_ciphers() if each["protocol"] == "TLSv1.2"}
    assert found == {"ECDHE-RSA-AES256-GCM-SHA384"}
    everything = ",".join(OPENSSL_NAMES)
    found = {each["name"] for each in suites(of_ec, everything).get_ciphers()}
    assert found >= set(OPENSSL_NAMES.values())
    text = {"keystore_location": str(of_ec)}
    assert "add TLS_CHACHA20" in refusal(
        cipher_suites="TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384", **text
    )
    assert "is not served" in refusal(cipher_suites="TLS_RSA_WITH_RC4_128_MD5", **text)
    assert "no handshake" in refusal(cipher_suites="TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", **text)
    newest = suites(of_ec, "", enabled_protocols=frozenset(["TLSv1.3"]))
    assert newest.minimum_version is ssl.TLSVersion.TLSv1_3
    assert "none is left" in refusal(
        cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        enabled_protocols=frozenset(["TLSv1.3"]),
        **text,
    )
