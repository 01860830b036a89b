"""Random subjects of certificates, sound and damaged, and the users that rules make of them.

A sound name is read again by an independent reader of RFC 4514: nothing in a value may look like
another part of the name.
"""

import contextlib
import random
from collections.abc import Sequence

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID, ObjectIdentifier

from broker.security.der import OID, SEQUENCE, read_certificate, values
from broker.security.dn import MOST_CHARACTERS, dn_of
from broker.security.mapping_rules import MappingRules
from tests.support.clients.certificates import Authority
from tests.support.logins.clients import damaged
from tests.support.logins.walk import FindingError

SET, UTF8 = 0x31, 0x0C
KINDS: dict[ObjectIdentifier, bytes] = {
    NameOID.COMMON_NAME: bytes((0x55, 4, 3)),
    NameOID.LOCALITY_NAME: bytes((0x55, 4, 7)),
    NameOID.ORGANIZATION_NAME: bytes((0x55, 4, 10)),
    NameOID.ORGANIZATIONAL_UNIT_NAME: bytes((0x55, 4, 11)),
}
PIECES = (
    "a", "Zz", " ", "  ", ",", ",CN=admin", "+", "=", "\\", '"', "<", ">", ";", "#", "é", "\u202e",
    "\U0001f600", "/", "$1", "\\2C", "0", "\t", "\n", "CN=",
)  # fmt: skip
"""Without a carriage return: Java escapes one at an end, and the reader takes no such escape."""
RULES = (
    "DEFAULT",
    "RULE:^CN=(.*?),.*$/$1/L,DEFAULT",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1@$0$9/U",
    "RULE:(.*)=(.*)/$2\\/$1/,RULE:x*/y/",
)
Rdn = Sequence[tuple[ObjectIdentifier, str]]


def tlv(tag: int, content: bytes) -> bytes:
    """One value in DER."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + content


def encoded(name: Sequence[Rdn]) -> bytes:
    """A name in DER; a part holds what is joined by plus signs."""
    parts = (
        b"".join(
            tlv(SEQUENCE, tlv(OID, KINDS[kind]) + tlv(UTF8, text.encode())) for kind, text in rdn
        )
        for rdn in name
    )
    return tlv(SEQUENCE, b"".join(tlv(SET, part) for part in parts))


class NameWalk:
    """Names, one after the other, by one seed."""

    def __init__(self, seed: int) -> None:
        """One certificate is signed, of which all others are damaged copies."""
        self.rng = random.Random(seed)
        self.steps = 0
        self._rules = [MappingRules(each) for each in RULES]
        self._certificate = Authority().server().certificate.public_bytes(Encoding.DER)

    def walk(self, steps: int) -> None:
        """So many names. Raises FindingError, and whatever is let out but ValueError."""
        while self.steps < steps:
            self.steps += 1
            choice = self.rng.randrange(8)
            if choice == 0:
                self._read_certificate()
            elif choice < 4:
                self._read_damaged(damaged(self.rng, encoded(self._name())))
            else:
                self._read_sound(self._name())

    def _read_certificate(self) -> None:
        with contextlib.suppress(ValueError):
            found = read_certificate(damaged(self.rng, self._certificate))
            _ = found.alternatives
            self._read_damaged(found.subject)

    def _read_damaged(self, subject: bytes) -> None:
        with contextlib.suppress(ValueError):
            list(values(subject))
            self._map(dn_of(subject))

    def _read_sound(self, name: Sequence[Rdn]) -> None:
        text = dn_of(encoded(name))
        self._map(text)
        again = x509.Name.from_rfc4514_string(text)
        found = [[(part.oid, part.value) for part in rdn] for rdn in again.rdns]
        if [sorted(each, key=str) for each in found] != [sorted(each, key=str) for each in name]:
            raise FindingError(f"{text!r} says {found}, not {name}")

    def _map(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise FindingError(f"a name of {len(text)} characters")
        for rules in self._rules:
            with contextlib.suppress(ValueError):
                rules.name_of(text)

    def _name(self) -> Sequence[Rdn]:
        return [
            [(kind, self._value()) for kind in self.rng.sample(list(KINDS), self._few())]
            for _ in range(self._few())
        ]

    def _few(self) -> int:
        return self.rng.choice((1, 1, 1, 2, 3))

    def _value(self) -> str:
        return "".join(self.rng.choices(PIECES, k=self.rng.randint(1, 6)))
