"""Stores of keys and certificates in PKCS#12 (`.p12`, `.pfx`), as keytool and openssl write them.

They become PEM, which all else is made of. The library that reads them is loaded when there is one:
it comes with `pip install 'horolog[security]'`.
"""

from typing import TYPE_CHECKING, NamedTuple

from broker.access.pem import Key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate

MAX_BYTES = 1 << 20
_JKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")


class KeyEntry(NamedTuple):
    """A private key, its certificate and those of authorities in between, in this order."""

    key: Key
    chain: list[str]


def key_entry(data: bytes, password: str) -> KeyEntry:
    """The first key of a store. Raises ValueError, which quotes nothing of it."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    store = _opened(data, password)
    if store.key is None or store.cert is None:
        raise ValueError("there is no private key with its certificate in the store")
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    others = [each.certificate for each in store.additional_certs]
    chain = _chained(store.cert.certificate, others)
    return KeyEntry(Key(key, is_encrypted=False), [_pem(each) for each in chain])


def trusted_certificates(data: bytes, password: str) -> list[str]:
    """Every certificate of a store that is no key's own. Raises ValueError, also without any."""
    found = [_pem(each.certificate) for each in _opened(data, password).additional_certs]
    if not found:
        raise ValueError("there is no certificate of an authority in the store")
    return found


def _opened(data: bytes, password: str) -> "PKCS12KeyAndCertificates":
    if data.startswith(_JKS):
        raise ValueError("it is a store of the type JKS")
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError as error:
        raise ValueError("PKCS12 needs a library: pip install 'horolog[security]'") from error
    try:
        return load_pkcs12(data, password.encode() if password else None)
    except ValueError as error:
        raise ValueError("it is no PKCS12 store, or its password is another one") from error
    except Exception as error:  # an algorithm that OpenSSL has not
        raise ValueError(f"it cannot be decrypted ({type(error).__name__})") from error


def _chained(first: "Certificate", others: "list[Certificate]") -> "list[Certificate]":
    """From the key's own on, each with that of its issuer behind it."""
    chain = [first]
    by_subject = {each.subject: each for each in others}
    while chain[-1].issuer != chain[-1].subject and len(chain) <= len(others):
        issuer = by_subject.get(chain[-1].issuer)
        if issuer is None:
            break
        chain.append(issuer)
    return chain


def _pem(certificate: "Certificate") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()
