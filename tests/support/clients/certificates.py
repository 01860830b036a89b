"""An authority for tests, and what it signs for servers and clients."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Signed:
    """A private key and its certificate."""

    key: PrivateKey
    certificate: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def key_pem(self, password: str = "") -> str:
        how: KeySerializationEncryption = (
            BestAvailableEncryption(password.encode()) if password else NoEncryption()
        )
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how).decode()

    def write(self, path: Path, password: str = "") -> Path:
        """Key and certificate in one file that others cannot read."""
        path.write_text(self.key_pem(password) + self.certificate_pem)
        path.chmod(0o600)
        return path


class Authority:
    """Signs with its own self-signed certificate."""

    def __init__(self, name: str = "Horolog test authority") -> None:
        self.own = self._make(_named(name), None, is_authority=True)

    @property
    def pem(self) -> str:
        return self.own.certificate_pem

    def write(self, path: Path) -> Path:
        """Its certificate in a file."""
        path.write_text(self.pem)
        return path

    def server(self, *, days: float = 30, key: PrivateKey | None = None) -> Signed:
        """For localhost, until in so many days."""
        return self._make(_named("localhost"), self.own, days=days, key=key)

    def client(self, subject: x509.Name) -> Signed:
        """For a client of this name."""
        return self._make(subject, self.own)

    def _make(
        self,
        subject: x509.Name,
        signer: Signed | None,
        *,
        days: float = 30,
        key: PrivateKey | None = None,
        is_authority: bool = False,
    ) -> Signed:
        key = key or ec.generate_private_key(ec.SECP256R1())
        now = dt.datetime.now(dt.UTC)
        names = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if signer is None else signer.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 60 * DAY)
            .not_valid_after(now + days * DAY)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(names, critical=False)
        )
        by = key if signer is None else signer.key
        return Signed(key, builder.sign(by, hashes.SHA256()))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
