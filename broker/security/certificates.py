"""The certificate of a listener with TLS, and the `ssl.SSLContext` made of it and its settings.

Everything is checked before anything counts: the files can be read and by nobody else, the key fits
its certificate, that is valid today, and a handshake in memory comes to its end. The standard
library reads keys from paths only, so they go through a file without a name.
"""

import ssl
from hashlib import sha256
from typing import NamedTuple

from broker.access.pem import Key, certificates, der_of, file_without_name, private_key
from broker.security.cipher_suites import split
from broker.security.der import Certificate, read_certificate
from broker.security.dn import dn_of
from broker.security.mapping_rules import MappingRules
from config.errors import ConfigError
from config.quantities import iso
from config.security.tls import PKCS12, TLS_1_2, TLS_1_3, TlsConfig
from storage.env import FileSystem
from storage.errors import DiskError

_VERIFY = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_NOT_FITTING = "KEY_VALUES_MISMATCH"
_HANDSHAKE_TURNS = 10


class Credentials(NamedTuple):
    """A context for new connections, the facts of the certificate that it shows, and the rules for
    those of clients.
    """

    context: ssl.SSLContext
    certificate: Certificate
    rules: MappingRules
    source: bytes
    """A checksum of everything it was made of."""

    def user_of(self, certificate: bytes) -> str:
        """The name of the user who showed a certificate, in DER. ValueError when it is refused."""
        return self.rules.name_of(dn_of(read_certificate(certificate).subject))


def load_credentials(config: TlsConfig, fs: FileSystem, now_ms: int) -> Credentials:
    """Reads and checks everything; blocks. ConfigError names file and reason."""
    at = _Place("ssl.keystore.location", config.key_source)
    key, chain = _key_and_chain(config, fs, at)
    trusted = _trusted(config, fs) if config.trust_source else []
    certificate = _certificate(chain[0], now_ms, at)
    context = _context(config)
    _load_chain(context, key, chain, config.key_password, at)
    if trusted:
        _load_trust(context, trusted, config)
    _try_handshake(context, at)
    context.verify_mode = _VERIFY[config.client_auth]
    source = sha256("".join((key.text, *chain, "=", *trusted)).encode()).digest()
    return Credentials(context, certificate, _rules(config), source)


def check_renewal(config: TlsConfig, before: Certificate, after: Certificate) -> None:
    """ConfigError when a certificate may not follow another one in a running broker (KIP-978)."""
    if after.subject != before.subject and not config.allow_dn_changes:
        key, what = "ssl.allow.dn.changes", "another subject"
    elif not before.alternatives <= after.alternatives and not config.allow_san_changes:
        key, what = "ssl.allow.san.changes", "lost some of its alternative names"
    else:
        return
    text = f"the certificate in {config.key_source} has {what}: set {key}=true, or start again"
    raise ConfigError(key, f"{key}: {text}")


class _Place(NamedTuple):
    key: str
    source: str

    def refusal(self, reason: object, advice: str = "") -> ConfigError:
        """The error that names what is wrong there."""
        text = f"{self.key}: {self.source}: {reason}"
        return ConfigError(self.key, f"{text}: {advice}" if advice else text)


def _key_and_chain(config: TlsConfig, fs: FileSystem, at: _Place) -> tuple[Key, list[str]]:
    if config.keystore_type == PKCS12:
        return _of_store(config, fs, at)
    if config.keystore_location:
        text = _read(fs, at)
        of_key, of_chain = text, text
    else:
        of_key, of_chain = config.keystore_key, config.keystore_certificate_chain
    try:
        key, chain = private_key(of_key), certificates(of_chain)
    except ValueError as error:
        raise at.refusal(error, "a PEM file has the key, its certificate, and the chain") from error
    if key.is_encrypted and not config.key_password:
        raise at.refusal("the private key is encrypted", "set ssl.key.password")
    if config.keystore_location and not key.is_encrypted and fs.is_open_to_all(at.source):
        raise at.refusal("every user of this machine can read the private key", "chmod o= the file")
    return key, chain


def _of_store(config: TlsConfig, fs: FileSystem, at: _Place) -> tuple[Key, list[str]]:
    from broker.access.key_stores import key_entry

    data = _read_bytes(fs, at)
    try:
        key, chain = key_entry(data, config.keystore_password)
    except ValueError as error:
        raise at.refusal(error, "see ssl.keystore.type and ssl.keystore.password") from error
    if not config.keystore_password and fs.is_open_to_all(at.source):
        raise at.refusal("every user of this machine can read the private key", "chmod o= the file")
    return key, chain


def _read_bytes(fs: FileSystem, at: _Place) -> bytes:
    from broker.access.key_stores import MAX_BYTES

    try:
        file = fs.open(at.source, write=False)
        try:
            return file.read_at(0, MAX_BYTES)
        finally:
            file.close()
    except DiskError as error:
        raise ConfigError(at.key, f"{at.key}: {error}") from error


def _read(fs: FileSystem, at: _Place) -> str:
    try:
        return fs.read_text(at.source)
    except DiskError as error:
        raise ConfigError(at.key, f"{at.key}: {error}") from error


def _certificate(pem: str, now_ms: int, at: _Place) -> Certificate:
    try:
        found = read_certificate(der_of(pem))
    except ValueError as error:
        raise at.refusal(f"the certificate cannot be read ({error})") from error
    if found.not_after_ms <= now_ms:
        raise at.refusal(f"the certificate expired at {iso(found.not_after_ms)}", "renew it")
    return found


def _rules(config: TlsConfig) -> MappingRules:
    try:
        return MappingRules(config.principal_mapping_rules)
    except ValueError as error:
        key = "ssl.principal.mapping.rules"
        raise ConfigError(key, f"{key}: {error}") from error


def _context(config: TlsConfig) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    spoken = set(config.enabled_protocols)
    try:
        newer, older = split(config.cipher_suites)
        if older:
            context.set_ciphers(":".join(older))
    except (ValueError, ssl.SSLError) as error:
        raise ConfigError("ssl.cipher.suites", f"ssl.cipher.suites: {error}") from error
    if newer or older:
        spoken -= {TLS_1_3} if not newer else {TLS_1_2} if not older else set()
    if not spoken:
        raise ConfigError(
            "ssl.enabled.protocols", "ssl.enabled.protocols: none is left that has a cipher suite"
        )
    versions = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}
    context.minimum_version, context.maximum_version = versions[min(spoken)], versions[max(spoken)]
    return context


def _load_chain(
    context: ssl.SSLContext, key: Key, chain: list[str], password: str, at: _Place
) -> None:
    try:
        with file_without_name("".join([key.text, *chain])) as path:
            context.load_cert_chain(path, password=lambda: password)
    except (ssl.SSLError, ValueError) as error:
        if isinstance(error, ssl.SSLError) and error.reason == _NOT_FITTING:
            reason = "the private key does not fit the first certificate"
        elif key.is_encrypted:
            reason = "the private key cannot be decrypted with ssl.key.password"
        else:
            reason = f"OpenSSL does not read it ({error})"
        raise at.refusal(reason) from error


def _trusted(config: TlsConfig, fs: FileSystem) -> list[str]:
    at = _Place("ssl.truststore.location", config.trust_source)
    try:
        if config.truststore_type == PKCS12:
            from broker.access.key_stores import trusted_certificates

            return trusted_certificates(_read_bytes(fs, at), config.truststore_password)
        return certificates(config.truststore_certificates or _read(fs, at))
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise at.refusal(error) from error


def _load_trust(context: ssl.SSLContext, trusted: list[str], config: TlsConfig) -> None:
    try:
        context.load_verify_locations(cadata="".join(trusted))
    except (ValueError, ssl.SSLError) as error:
        raise _Place("ssl.truststore.location", config.trust_source).refusal(error) from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # each of them is trusted, as in Java


def _try_handshake(context: ssl.SSLContext, at: _Place) -> None:
    """One handshake with ourselves: a suite that the key cannot serve is found at the start."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trying = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trying.check_hostname, trying.verify_mode = False, ssl.CERT_NONE
    ends = [
        trying.wrap_bio(to_client, to_server),
        context.wrap_bio(to_server, to_client, server_side=True),
    ]
    try:
        for _ in range(_HANDSHAKE_TURNS):
            ends = [each for each in ends if not _shook_hands(each)]
    except ssl.SSLError as error:
        raise at.refusal(f"no handshake succeeds with it ({error.reason})") from error
    if ends:
        raise at.refusal("no handshake comes to its end with it")


def _shook_hands(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
