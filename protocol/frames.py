"""Frames: four bytes of length, then that many bytes. Judged before a buffer is made for them."""

from __future__ import annotations

from protocol.errors import DecodeError

MAX_FRAME_BYTES = 100 * 1024 * 1024  # socket.request.max.bytes
PRE_AUTH_FRAME_BYTES = 64 * 1024  # until a peer that must authenticate has done so
MIN_FRAME_BYTES = 10  # the shortest request header

_HTTP = (b"GET ", b"PUT ", b"POST", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")


class FrameTooLarge(DecodeError):  # noqa: N818
    """A frame that claims more bytes than are permitted."""


def check_length(prefix: int, limit: int) -> None:
    """Judge a frame by its length prefix, a signed 32-bit number; `limit` is in bytes.

    Raises FrameTooLarge over the limit, DecodeError for less than any request needs.
    """
    if prefix > limit:
        raise FrameTooLarge(f"a frame of {prefix} bytes, more than {limit}")
    if prefix < MIN_FRAME_BYTES:
        raise DecodeError(f"a frame of {prefix} bytes")


def foreign_protocol(first: bytes) -> str | None:
    """Name the protocol that a connection's first four bytes belong to, when it is not Kafka's.

    Read as a length, each of these is over `MAX_FRAME_BYTES`, so asking once a length was refused
    is early enough.
    """
    start = bytes(first[:4])
    if start[:2] == b"\x16\x03":
        return "tls"
    if start in _HTTP:
        return "http"
    return "ssh" if start == b"SSH-" else None
