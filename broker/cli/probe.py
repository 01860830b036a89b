"""Checks whether a broker on this machine is ready, for health checks of container engines.

Container engines ask every few seconds, on machines that may be busy. One request over a plain
socket keeps a whole check at about a tenth of a second and little memory."""

import os
import socket
from typing import NamedTuple

READY, NOT_READY = 0, 1
TIMEOUT_SECONDS = 3.0
MAX_ANSWER_BYTES = 64 * 1024
DEFAULT_PORT = 9404
HTTP, HTTPS = "http://", "https://"
ADVICE = "is it https? --http https://HOST:PORT"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_EVERY_ADDRESS = ("", "0.0.0.0", "[::]")  # noqa: S104 - compared, not bound


class HttpAddress(NamedTuple):
    """The place of an HTTP port."""

    host: str
    port: int
    is_tls: bool


def parse_address(text: str) -> HttpAddress:
    """Of HOST:PORT, or https://HOST:PORT; ValueError when it is neither."""
    place = parse_place(text.removeprefix(HTTPS).removeprefix(HTTP).rstrip("/"))
    if place is None:
        raise ValueError(f"{text!r} is no HOST:PORT, nor https://HOST:PORT")
    return HttpAddress(*place, text.startswith(HTTPS))


def parse_place(text: str) -> tuple[str, int] | None:
    """Of HOST:PORT, without a host this machine; None when it is none."""
    host, colon, port = text.rpartition(":")
    is_port = port.isdecimal() and 0 < int(port) < 1 << 16
    if not (colon and is_port and _is_host(host)):
        return None
    return host.strip("[]") or "127.0.0.1", int(port)


def _is_host(text: str) -> bool:
    """False for what no resolver takes: a part of a name that is empty, or too long."""
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return True


def address_in_environment() -> str:
    """HOST:PORT of the broker's HTTP port: HOROLOG_HTTP, or the port of HOROLOG_HTTP_LISTENER.

    Behind https:// when HOROLOG_HTTP_SECURITY_PROTOCOL is SSL.
    """
    stated = os.environ.get("HOROLOG_HTTP")
    if stated and stated.startswith(("https://", "http://")):
        return stated
    host, _, port = (stated or os.environ.get("HOROLOG_HTTP_LISTENER", "")).rpartition(":")
    local = "127.0.0.1" if host in _EVERY_ADDRESS else host
    is_tls = os.environ.get("HOROLOG_HTTP_SECURITY_PROTOCOL", "").strip().upper() == "SSL"
    return f"{'https://' if is_tls else ''}{local}:{port or DEFAULT_PORT}"


def ask(address: str, ca_file: str | None = None) -> tuple[int, str]:
    """Exit status and what to print: the reasons when the broker is not ready, or no answer.

    Of https the certificate is checked against `ca_file`. Without one it is checked as browsers
    do, but not on this machine: nothing secret is sent, and there is nobody on the way.
    """
    try:
        status, text = _readyz(parse_address(address), ca_file)
    except (OSError, ValueError, OverflowError) as error:
        return NOT_READY, f"no broker answers at {address}: {error}"
    if status == 200:
        return READY, "ready"
    return NOT_READY, f"not ready: {'; '.join(text.split(chr(10)))}"


def main() -> int:
    """Asks where the environment says; the exit status."""
    status, text = ask(address_in_environment(), os.environ.get("HOROLOG_HTTP_CA_FILE"))
    print(text)
    return status


def _readyz(address: HttpAddress, ca_file: str | None) -> tuple[int, str]:
    """The status and the text of GET /readyz; OSError, or ValueError when it is no such answer."""
    with socket.create_connection(address[:2], TIMEOUT_SECONDS) as connection:
        if not address.is_tls:
            answer = _exchanged(connection, address.host)
        else:
            with _with_tls(connection, address.host, ca_file) as hidden:
                answer = _exchanged(hidden, address.host)
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ValueError(f"what answers there does not speak HTTP: {ADVICE}")
    return int(words[1]), body.decode("utf-8", "replace").strip()


def _exchanged(connection: socket.socket, host: str) -> bytes:
    name = f"[{host}]" if ":" in host else host
    connection.sendall(
        f"GET /readyz HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode()
    )
    answer = b""
    while len(answer) < MAX_ANSWER_BYTES and (piece := connection.recv(4096)):
        answer += piece
    return answer


def _with_tls(connection: socket.socket, host: str, ca_file: str | None) -> socket.socket:
    import ssl

    context = ssl.create_default_context(cafile=ca_file)
    if host in LOOPBACK:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED if ca_file else ssl.CERT_NONE
    return context.wrap_socket(connection, server_hostname=host)
