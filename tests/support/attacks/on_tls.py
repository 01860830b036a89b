"""Attacks on TLS listeners, by strangers who have no certificate or a strange one."""

import contextlib
import socket
import ssl
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from protocol.apis.api_versions import ApiVersionsRequest
from tests.support.attacks.target import Attack, Target, connect, trusting, wrapped
from tests.support.clients.certificates import Authority, Signed
from tests.support.clients.wire import request_frame

VERSIONS = request_frame(ApiVersionsRequest(), 0)
HANDSHAKE_HEAD = b"\x16\x03\x01\x40\x00"
MANY = 400
"""Connections that an attack holds open at one time."""


def hello(context: ssl.SSLContext | None = None) -> bytes:
    """The first flight of a client."""
    tls = context or ssl.create_default_context()
    out = ssl.MemoryBIO()
    client = tls.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


def hold(target: Target, port: int, first: bytes) -> int:
    """Many connections that say this and no more; as many again when they are dropped."""
    held: list[socket.socket] = []
    struck = 0
    while target.goes_on():
        with contextlib.suppress(OSError):
            sock = connect(port)
            held.append(sock)
            sock.sendall(first)
        struck += 1
        if len(held) > MANY:
            held.pop(0).close()
    for sock in held:
        sock.close()
    return struck


def shower(target: Target, port: int, data: bytes) -> int:
    """One connection after the other says this and waits for the end."""
    struck = 0
    while target.goes_on():
        with contextlib.suppress(OSError), connect(port) as sock:
            sock.settimeout(target.rest() + 0.01)
            sock.sendall(data)
            while sock.recv(65536):
                pass
        struck += 1
    return struck


def silence(target: Target) -> int:
    """Connections that say nothing."""
    return hold(target, target.certified, b"")


def half_hellos(target: Target) -> int:
    """Connections that stop in the middle of the first flight."""
    return hold(target, target.certified, hello()[:100])


def hellos_alone(target: Target) -> int:
    """The broker signs its answer, and the client never goes on."""
    return hold(target, target.certified, hello())


def slow_hellos(target: Target) -> int:
    """A byte at a time, on many connections."""
    first, struck = hello(), 0
    socks = [connect(target.certified) for number in range(50)]
    while target.goes_on():
        at = struck // len(socks) % len(first)
        with contextlib.suppress(OSError):
            socks[struck % len(socks)].sendall(first[at : at + 1])
        struck += 1
    for sock in socks:
        sock.close()
    return struck


def _handshakes(target: Target, context: ssl.SSLContext) -> int:
    struck = 0
    while target.goes_on():
        with contextlib.suppress(OSError), connect(target.certified) as sock:
            wrapped(context, sock).close()
        struck += 1
    return struck


def handshakes(target: Target) -> int:
    """Whole handshakes, one after the other, from many addresses."""
    return _handshakes(target, trusting(target))


def handshakes_of_one_address(target: Target) -> int:
    """The same from one address."""
    struck, context = 0, trusting(target)
    while target.goes_on():
        with contextlib.suppress(OSError), connect(target.certified, 0) as sock:
            wrapped(context, sock).close()
        struck += 1
    return struck


def old_handshakes(target: Target) -> int:
    """Whole handshakes of TLS 1.2."""
    context = trusting(target)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return _handshakes(target, context)


def forbidden_versions(target: Target) -> int:
    """First flights that offer nothing newer than TLS 1.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    return shower(target, target.certified, hello(context))


def endless_hello(target: Target) -> int:
    """A first flight of hundreds of records that never ends."""
    record = HANDSHAKE_HEAD + b"\x01\x00\xff\xff" + bytes(0x4000 - 4)
    more = (HANDSHAKE_HEAD + bytes(0x4000)) * 40
    return shower(target, target.certified, record + more)


def garbage(target: Target) -> int:
    """Bytes that are no TLS at all."""
    return shower(target, target.certified, bytes(range(256)) * 20)


def kafka_in_the_clear(target: Target) -> int:
    """Kafka's requests on a port that speaks TLS."""
    return shower(target, target.certified, VERSIONS * 20)


def http_on_tls(target: Target) -> int:
    """A browser on a port of Kafka."""
    return shower(target, target.certified, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")


def tls_on_a_plain_port(target: Target) -> int:
    """The first flight where frames are expected: as a length it is 369 MB."""
    return shower(target, target.plain, hello())


def broken_records(target: Target) -> int:
    """A record that cannot be decrypted, behind a sound handshake."""
    struck, context = 0, trusting(target)
    while target.goes_on():
        with contextlib.suppress(OSError), connect(target.certified) as sock:
            tls = context.wrap_socket(sock, server_hostname="localhost")
            with socket.socket(fileno=tls.detach()) as bare:
                bare.sendall(b"\x17\x03\x03\x00\x40" + bytes(0x40))
                bare.recv(100)
        struck += 1
    return struck


def tiny_records(target: Target) -> int:
    """A record of TLS for each byte."""
    struck, context = 0, trusting(target)
    while target.goes_on():
        with contextlib.suppress(OSError), wrapped(context, connect(target.certified)) as sock:
            for at in range(len(VERSIONS)):
                sock.send(VERSIONS[at : at + 1])
                struck += 1
    return struck


def _openssl(target: Target, version: str, letter: bytes) -> int:
    """A letter for OpenSSL's own client, again and again."""
    struck = 0
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{target.certified}", version]
    while target.goes_on():
        quiet = subprocess.DEVNULL
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet)
        with contextlib.suppress(BrokenPipeError), client:
            assert client.stdin
            while target.goes_on() and client.poll() is None:
                client.stdin.write(letter + b"\n")
                client.stdin.flush()
                struck += 1
                time.sleep(0.001)
            client.kill()
    return struck


def key_updates(target: Target) -> int:
    """New keys, each of which the broker must derive too."""
    return _openssl(target, "-tls1_3", b"K")


def renegotiation(target: Target) -> int:
    """A new handshake within a connection of TLS 1.2."""
    return _openssl(target, "-tls1_2", b"R")


def _with_certificate(target: Target, chain: Path) -> int:
    context = trusting(target)
    context.load_cert_chain(chain)
    struck = 0
    while target.goes_on():
        with contextlib.suppress(OSError), wrapped(context, connect(target.certified)) as sock:
            sock.settimeout(1)
            sock.sendall(VERSIONS)
            sock.recv(100)
        struck += 1
    return struck


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, text, _validate=False)])


def _chain(target: Target, name: str, signed: Signed, more: str = "") -> Path:
    path = target.folder / f"{name}.pem"
    path.write_text(signed.key_pem() + signed.certificate_pem + more)
    return path


def strange_certificates(target: Target) -> int:
    """Certificates of an authority that the broker does not know."""
    other = Authority("Stranger").client(_named("stranger"))
    return _with_certificate(target, _chain(target, "strange", other))


def thousand_certificates(target: Target) -> int:
    """A chain of a thousand certificates."""
    signed = target.authority.client(_named("chain"))
    more = "".join(_links())
    return _with_certificate(target, _chain(target, "chain", signed, more))


def _links() -> Iterator[str]:
    link = Authority("Link").pem
    for _ in range(1000):
        yield link


def long_names(target: Target) -> int:
    """A certificate of the right authority with a name of 60 KB."""
    signed = target.authority.client(_named("x," * 30_000))
    return _with_certificate(target, _chain(target, "long", signed))


ATTACKS: tuple[Attack, ...] = (
    silence, half_hellos, hellos_alone, slow_hellos, handshakes, handshakes_of_one_address,
    old_handshakes, forbidden_versions, endless_hello, garbage, kafka_in_the_clear, http_on_tls,
    tls_on_a_plain_port, broken_records, tiny_records, key_updates, renegotiation,
    strange_certificates, thousand_certificates, long_names,
)  # fmt: skip
