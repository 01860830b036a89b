"""A frame is judged by its first four bytes."""

import struct

import pytest

from protocol.errors import DecodeError
from protocol.frames import (
    MAX_FRAME_BYTES,
    PRE_AUTH_FRAME_BYTES,
    FrameTooLarge,
    check_length,
    foreign_protocol,
)


@pytest.mark.parametrize("limit", [PRE_AUTH_FRAME_BYTES, MAX_FRAME_BYTES])
def test_the_limit_itself_is_permitted_and_one_byte_more_is_not(limit: int) -> None:
    check_length(limit, limit)
    with pytest.raises(FrameTooLarge, match=str(limit)):
        check_length(limit + 1, limit)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 9])
def test_lengths_that_no_request_has_are_damage(length: int) -> None:
    with pytest.raises(DecodeError) as refusal:
        check_length(length, MAX_FRAME_BYTES)
    assert not isinstance(refusal.value, FrameTooLarge)


def test_the_shortest_request_passes() -> None:
    check_length(10, PRE_AUTH_FRAME_BYTES)


FOREIGN = {
    b"\x16\x03\x01\x02\x00\x01": "tls",
    b"\x16\x03\x03\x00\xf4": "tls",
    b"GET / HTTP/1.1\r\n": "http",
    b"POST /x": "http",
    b"OPTIONS *": "http",
    b"PRI * HTTP/2.0": "http",
    b"SSH-2.0-OpenSSH_9.2": "ssh",
}


@pytest.mark.parametrize(("first", "name"), FOREIGN.items())
def test_strangers_are_recognised(first: bytes, name: str) -> None:
    assert foreign_protocol(first) == name
    assert foreign_protocol(memoryview(first)[:4]) == name


@pytest.mark.parametrize("first", [f for f in FOREIGN if f[:2] != b"\x16\x03"])
def test_a_stranger_is_over_every_limit_read_as_a_length(first: bytes) -> None:
    with pytest.raises(FrameTooLarge):
        check_length(struct.unpack(">i", first[:4])[0], MAX_FRAME_BYTES)


def test_a_tls_hello_is_over_every_limit_read_as_a_length() -> None:
    with pytest.raises(FrameTooLarge):
        check_length(0x16030000, MAX_FRAME_BYTES)


@pytest.mark.parametrize("first", [b"", b"\0", b"\0\0\0\x20", b"GETS", b"\x16\x02\0\0"])
def test_others_are_not(first: bytes) -> None:
    assert foreign_protocol(first) is None
