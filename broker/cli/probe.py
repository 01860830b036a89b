"""Checks whether a broker on this machine is ready, for health checks of container engines.

Container engines ask every few seconds, on machines that may be busy. One request over a plain
socket keeps a whole check at about a tenth of a second and little memory."""

import os
import socket

READY, NOT_READY = 0, 1
TIMEOUT_SECONDS = 3.0
MAX_ANSWER_BYTES = 64 * 1024
DEFAULT_PORT = 9404
_EVERY_ADDRESS = ("", "0.0.0.0", "[::]")  # noqa: S104 - compared, not bound


def address_in_environment() -> str:
    """HOST:PORT of the broker's HTTP port: HOROLOG_HTTP, or the port of HOROLOG_HTTP_LISTENER."""
    listener = os.environ.get("HOROLOG_HTTP") or os.environ.get("HOROLOG_HTTP_LISTENER", "")
    host, _, port = listener.rpartition(":")
    local = "127.0.0.1" if host in _EVERY_ADDRESS else host
    return f"{local}:{port or DEFAULT_PORT}"


def ask(address: str) -> tuple[int, str]:
    """Exit status and what to print: the reasons when the broker is not ready, or no answer."""
    try:
        status, text = _readyz(address)
    except (OSError, ValueError, OverflowError) as error:
        return NOT_READY, f"no broker answers at {address}: {error}"
    if status == 200:
        return READY, "ready"
    return NOT_READY, f"not ready: {'; '.join(text.split(chr(10)))}"


def main() -> int:
    """Asks where the environment says; the exit status."""
    status, text = ask(address_in_environment())
    print(text)
    return status


def _readyz(address: str) -> tuple[int, str]:
    """The status and the text of GET /readyz; OSError, or ValueError when it is no such answer."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_SECONDS) as connection:
        connection.sendall(
            f"GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b""
        while len(answer) < MAX_ANSWER_BYTES and (piece := connection.recv(4096)):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ValueError("what answers there does not speak HTTP")
    return int(words[1]), body.decode("utf-8", "replace").strip()
