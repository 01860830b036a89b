"""The generated codec and the interpreted one agree on every message, version and damage."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.codec import build, decode, encode, encode_bytes, interpret
from protocol.errors import DecodeError
from protocol.schema import struct_of
from protocol.types import RecordsType
from tests.support.clients.message_strategies import Whole, every_struct, messages, name_of

BOTH = (decode, interpret)
each_message = pytest.mark.parametrize("whole", every_struct(), ids=name_of)
# A few for each of some 400 Structs; a bigger profile brings more of each.
few = settings(
    max_examples=max(5, settings.default.max_examples // 20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@each_message
@few
@given(data=st.data())
def test_what_is_written_is_read_back(whole: Whole, data: st.DataObject) -> None:
    _, cls, version = whole
    message = data.draw(messages(cls, version))
    wire = encode_bytes(message, version)
    assert wire == build(message, version)
    for read in BOTH:
        assert read(cls, version, memoryview(wire)) == message


@each_message
@few
@given(data=st.data())
def test_every_truncation_is_refused(whole: Whole, data: st.DataObject) -> None:
    _, cls, version = whole
    wire = memoryview(encode_bytes(data.draw(messages(cls, version)), version))
    for size in [*range(min(len(wire), 400)), *range(max(400, len(wire) - 50), len(wire))]:
        with pytest.raises(DecodeError):
            decode(cls, version, wire[:size])
    if wire:
        with pytest.raises(DecodeError):
            interpret(cls, version, wire[: data.draw(st.integers(0, len(wire) - 1))])


@each_message
@few
@given(data=st.data(), extra=st.binary(min_size=1, max_size=3))
def test_trailing_bytes_are_refused(whole: Whole, data: st.DataObject, extra: bytes) -> None:
    _, cls, version = whole
    wire = encode_bytes(data.draw(messages(cls, version)), version)
    for read in BOTH:
        with pytest.raises(DecodeError):
            read(cls, version, memoryview(wire + extra))


def outcome(read: Any, cls: type[Any], version: int, wire: bytes) -> Any:
    try:
        return read(cls, version, memoryview(wire))
    except DecodeError:
        return DecodeError


@each_message
@few
@given(data=st.data())
def test_damage_is_a_decode_error_or_another_message(whole: Whole, data: st.DataObject) -> None:
    _, cls, version = whole
    wire = bytearray(encode_bytes(data.draw(messages(cls, version)), version))
    places = st.integers(0, max(len(wire) - 1, 0))
    for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
        wire[place : place + 1] = bytes((byte,))
    generated = outcome(decode, cls, version, bytes(wire))
    assert generated == outcome(interpret, cls, version, bytes(wire))


@each_message
@few
@given(noise=st.binary(max_size=64))
def test_noise_is_a_decode_error_or_a_message(whole: Whole, noise: bytes) -> None:
    _, cls, version = whole
    generated = outcome(decode, cls, version, noise)
    assert generated == outcome(interpret, cls, version, noise)
    if generated is not DecodeError:
        with suppress(UnicodeEncodeError):
            assert decode(cls, version, memoryview(encode_bytes(generated, version))) == generated


def payloads_of(message: Any, struct: Any) -> list[Any]:
    """Every payload of records inside a message, in wire order."""
    found = []
    for field in struct.subcons:
        wire = field.subcon
        if isinstance(wire, RecordsType) and getattr(message, field.name):
            found.append(getattr(message, field.name))
        elif hasattr(wire, "element") and hasattr(wire.element, "cls"):
            for item in getattr(message, field.name) or ():
                found += payloads_of(item, wire.element)
    return found


@pytest.mark.parametrize(
    "whole",
    [w for w in every_struct() if "Produce" in name_of(w) or "Fetch" in name_of(w)],
    ids=name_of,
)
@few
@given(data=st.data())
def test_payloads_stay_parts_of_their_own(whole: Whole, data: st.DataObject) -> None:
    _, cls, version = whole
    message = data.draw(messages(cls, version))
    parts = encode(message, version)
    payloads = payloads_of(message, struct_of(cls, version))
    assert [part for part in parts if any(part is payload for payload in payloads)] == payloads
    assert b"".join(parts) == build(message, version)
