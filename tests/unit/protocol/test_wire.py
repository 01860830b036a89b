"""Varints, tag sections and their limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.wire import MAX_OBJECTS, MAX_TAGS, TAG_COST, read_uvarint, skip_tags, uvarint

GOLDEN = {
    0: b"\0",
    127: b"\x7f",
    128: b"\x80\x01",
    300: b"\xac\x02",
    2**32 - 1: b"\xff\xff\xff\xff\x0f",
}


@pytest.mark.parametrize(("value", "encoded"), GOLDEN.items())
def test_an_unsigned_varint_is_seven_bits_a_byte_low_first(value: int, encoded: bytes) -> None:
    assert uvarint(value) == encoded
    assert read_uvarint(b"?" + encoded + b"?", 1) == (value, 1 + len(encoded))


@given(st.integers(0, 2**32 - 1))
def test_every_length_comes_back(value: int) -> None:
    encoded = uvarint(value)
    assert read_uvarint(memoryview(encoded), 0) == (value, len(encoded))


@pytest.mark.parametrize("encoded", [b"\xff" * 5, b"\xff\xff\xff\xff\x10", b"\x80" * 5 + b"\x01"])
def test_more_than_32_bits_are_refused(encoded: bytes) -> None:
    with pytest.raises(DecodeError, match="32 bits"):
        read_uvarint(encoded, 0)


def test_a_varint_cut_short_ends_like_any_read_past_the_end() -> None:
    with pytest.raises(IndexError):
        read_uvarint(b"\x80\x80", 0)


def test_unknown_tags_are_stepped_over() -> None:
    section = b"\x00\x02ab" + b"\x81\x01\x01c" + b"after"
    assert skip_tags(section, 0, 2, MAX_OBJECTS) == (len(section) - 5, MAX_OBJECTS - 2 * TAG_COST)


def test_a_struct_has_no_more_tags_than_the_cap() -> None:
    section = b"\x00\x00" * (MAX_TAGS + 1)
    assert skip_tags(section, 0, MAX_TAGS, MAX_OBJECTS)[0] == 2 * MAX_TAGS
    with pytest.raises(DecodeError, match="65 tagged fields"):
        skip_tags(section, 0, MAX_TAGS + 1, MAX_OBJECTS)


def test_the_cap_holds_for_counts_of_several_bytes() -> None:
    with pytest.raises(DecodeError, match="tagged fields"):
        skip_tags(b"\xff\xff\xff\xff\x0f", 1, 0xFF, MAX_OBJECTS)


def test_tags_of_a_whole_message_share_one_budget() -> None:
    with pytest.raises(DecodeError, match="tagged fields"):
        skip_tags(b"\x00\x00" * 2, 0, 2, 2 * TAG_COST - 1)


@pytest.mark.parametrize("section", [b"\x00\x05abc", b"\x00\xff\xff\xff\xff\x0f"])
def test_a_tag_ends_within_the_data(section: bytes) -> None:
    with pytest.raises(DecodeError, match="truncated"):
        skip_tags(section, 0, 1, MAX_OBJECTS)
