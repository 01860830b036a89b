"""Private keys and certificates in PEM, in files or in one line of a setting (KIP-651)."""

import binascii
import os
import re
import ssl
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----(.*?)-----END \1-----", re.DOTALL)
_KEY, _CERTIFICATE = "PRIVATE KEY", "CERTIFICATE"


class Key(NamedTuple):
    """A private key: PEM, with lines."""

    text: str
    is_encrypted: bool


def private_key(text: str) -> Key:
    """The one private key in `text`. Raises ValueError, which quotes nothing of it."""
    found = [(name, body) for name, body in _BLOCK.findall(text) if name.endswith(_KEY)]
    if len(found) != 1:
        raise ValueError("there is no private key" if not found else "there are two private keys")
    name, body = found[0]
    return Key(_block(name, body), name.startswith("ENCRYPTED") or "ENCRYPTED" in body)


def certificates(text: str) -> list[str]:
    """The certificates in `text`, each as PEM with lines. Raises ValueError without any."""
    found = [_block(name, body) for name, body in _BLOCK.findall(text) if name == _CERTIFICATE]
    if not found:
        raise ValueError("there is no certificate")
    return found


def der_of(certificate: str) -> bytes:
    """A certificate without its armour. Raises ValueError."""
    try:
        return ssl.PEM_cert_to_DER_cert(certificate)
    except binascii.Error as error:
        raise ValueError(f"a certificate is no base64: {error}") from error


def _block(name: str, body: str) -> str:
    """One block; settings may have it in a single line, which OpenSSL does not read."""
    if ":" not in body:  # the old encryption has headers: left as they are
        body = "\n".join(textwrap.wrap("".join(body.split()), 64))
    return f"-----BEGIN {name}-----\n{body.strip()}\n-----END {name}-----\n"


@contextmanager
def file_without_name(text: str) -> Iterator[str]:
    """The path of a file in memory that no other process can open by name."""
    descriptor = os.memfd_create("horolog-key")
    try:
        with open(descriptor, "w", encoding="ascii", errors="replace", closefd=False) as file:
            file.write(text)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
