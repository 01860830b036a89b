"""TLS of a client: whom it trusts, and the certificate that it shows."""

import socket
import ssl
from collections.abc import Mapping

from broker.access.errors import BadSetting, BrokerNotProven
from broker.access.files import read_file, read_text
from broker.access.pem import Key, certificates, file_without_name, private_key
from broker.access.settings import HOSTS, ClientSecurity
from config.security.protocols import TLS
from config.security.tls import PEM, PKCS12

_TRUST, _KEYS = "ssl.truststore.location", "ssl.keystore.location"


def connected(
    host: str, port: int, security: ClientSecurity, timeout_seconds: float
) -> socket.socket:
    """A connection, by TLS if the protocol has it. OSError, BadSetting, BrokerNotProven."""
    context = tls_context(security.settings) if security.protocol in TLS else None
    plain = socket.create_connection((host, port), timeout_seconds)
    if context is None:
        return plain
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLError as error:
        plain.close()
        reason = getattr(error, "verify_message", "") or error.reason or "no TLS is spoken there"
        raise BrokerNotProven(
            f"no TLS with {host}:{port} ({reason}): security.protocol and ssl.truststore.* say "
            "how to connect"
        ) from None
    except OSError:
        plain.close()
        raise


def tls_context(settings: Mapping[str, str], authorities: str | None = None) -> ssl.SSLContext:
    """The context of a client; `authorities` names a PEM file that wins over `ssl.truststore.*`.

    Without any of them it trusts the machine's authorities. BadSetting names the key and the file.
    """
    trusted = _trusted(settings, authorities)
    context = ssl.create_default_context(cadata="".join(trusted)) if trusted else _of_machine()
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # each of them is trusted, as in Java
    if settings.get(HOSTS, "https") == "":
        context.check_hostname = False
    shown = _shown(settings)
    if shown is not None:
        _load(context, *shown, settings.get("ssl.key.password", ""))
    return context


def _of_machine() -> ssl.SSLContext:
    return ssl.create_default_context()


def _trusted(settings: Mapping[str, str], authorities: str | None) -> list[str]:
    path = authorities or settings.get(_TRUST)
    inline = settings.get("ssl.truststore.certificates", "")
    try:
        if not path:
            return certificates(inline) if inline else []
        kind = PEM if authorities else settings.get("ssl.truststore.type", PEM).strip().upper()
        if kind == PKCS12:
            from broker.access.key_stores import trusted_certificates

            password = settings.get("ssl.truststore.password", "")
            return trusted_certificates(read_file(_TRUST, path), password)
        return certificates(read_text(_TRUST, path))
    except ValueError as error:
        raise BadSetting(f"{_TRUST}: authorities of {path or 'the setting'}: {error}") from error


def _shown(settings: Mapping[str, str]) -> tuple[Key, list[str]] | None:
    """The key and the certificates that the client shows."""
    path = settings.get(_KEYS)
    try:
        if not path:
            key = settings.get("ssl.keystore.key")
            chain = settings.get("ssl.keystore.certificate.chain", "")
            return (private_key(key), certificates(chain)) if key else None
        if settings.get("ssl.keystore.type", PEM).strip().upper() == PKCS12:
            from broker.access.key_stores import key_entry

            entry = key_entry(read_file(_KEYS, path), settings.get("ssl.keystore.password", ""))
            return entry.key, entry.chain
        text = read_text(_KEYS, path)
        return private_key(text), certificates(text)
    except ValueError as error:
        where = f"{_KEYS} {path}" if path else "ssl.keystore.key"
        raise BadSetting(f"{where}: no key and certificate ({error})") from error


def _load(context: ssl.SSLContext, key: Key, chain: list[str], password: str) -> None:
    try:
        with file_without_name("".join([key.text, *chain])) as path:
            context.load_cert_chain(path, password=lambda: password)
    except (ssl.SSLError, ValueError):
        raise BadSetting(
            f"{_KEYS}: the key does not fit the certificate, or ssl.key.password is another one"
        ) from None
