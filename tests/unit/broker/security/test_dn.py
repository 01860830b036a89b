"""Subjects of certificates are written as Java writes them; hostile ones are refused."""

import random
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from broker.security.der import read_certificate
from broker.security.dn import MOST_CHARACTERS, dn_of
from tests.support.clients.certificates import Authority

LINES = Path(__file__).with_name("names_of_java.txt").read_text().splitlines()
"""DER, and in UTF-8 what `new X500Principal(der).getName()` of Java 17 said; both in hex digits."""


@pytest.mark.parametrize("line", LINES)
def test_a_name_is_what_java_says(line: str) -> None:
    der, _, text = line.partition(" ")
    assert dn_of(bytes.fromhex(der)) == bytes.fromhex(text).decode()


def test_a_name_is_reversed_with_keywords_and_hex() -> None:
    name = x509.Name.from_rfc4514_string("1.2.840.113549.1.9.1=a@b.c,CN=Duke\\, the,O=Org,C=US")
    found = read_certificate(Authority().client(name).certificate.public_bytes(Encoding.DER))
    assert dn_of(found.subject) == "1.2.840.113549.1.9.1=#16056140622e63,CN=Duke\\, the,O=Org,C=US"


def test_damaged_certificates_and_long_names_are_refused_and_nothing_else_happens() -> None:
    chance = random.Random(4)
    name = x509.Name.from_rfc4514_string("CN=Duke,OU=A+CN=B,O=Org,C=US")
    whole = Authority().client(name).certificate.public_bytes(Encoding.DER)
    for _ in range(20_000):
        damaged = bytearray(whole[: chance.randrange(len(whole) + 1)])
        for _ in range(chance.randrange(4)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            text = dn_of(read_certificate(bytes(damaged)).subject)
        except ValueError:
            continue
        assert len(text) <= MOST_CHARACTERS
    long = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x" * 60)] * 50)
    with pytest.raises(ValueError, match="more than 2048"):
        dn_of(long.public_bytes())
