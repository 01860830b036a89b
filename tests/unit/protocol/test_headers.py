"""Request headers are read under their caps; what is not served is told from what is damaged."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.headers import (
    RequestHeader,
    UnsupportedVersion,
    parse_request_header,
    request_header_bytes,
    response_header,
    versions_of,
)
from protocol.registry import apis, by_name
from protocol.wire import MAX_TAGS

SERVED = versions_of(apis().values())
PRODUCE = by_name()["Produce"]
API_VERSIONS = by_name()["ApiVersions"]


def parse(frame: bytes) -> RequestHeader:
    return parse_request_header(memoryview(frame), SERVED)


@pytest.mark.parametrize("api", apis().values(), ids=lambda api: api.name)
@given(st.integers(-(2**31), 2**31 - 1), st.none() | st.text(max_size=20))
def test_what_a_client_writes_is_read(api, correlation_id, client_id) -> None:  # type: ignore[no-untyped-def]
    for version in range(api.min_version, api.max_version + 1):
        head = request_header_bytes(api, version, correlation_id, client_id)
        expected = RequestHeader(api.key, version, correlation_id, client_id, len(head))
        assert parse(head + b"body") == expected


def test_bytes_of_a_header() -> None:
    old = pack(">hhih", 0, 8, 7, 2) + b"me"
    assert request_header_bytes(PRODUCE, 8, 7, "me") == old
    assert request_header_bytes(PRODUCE, 9, 7, "me")[-3:] == b"me\0"
    assert request_header_bytes(PRODUCE, 8, 7, None) == pack(">hhih", 0, 8, 7, -1)


def test_tags_of_a_flexible_header_are_stepped_over() -> None:
    tags = b"\x02" + b"\x00\x03abc" + b"\x07\x00"
    frame = pack(">hhih", 0, 9, 7, -1) + tags + b"body"
    assert parse(frame).body_position == len(frame) - 4


def test_a_header_has_no_more_tags_than_the_cap() -> None:
    head = pack(">hhih", 18, 3, 7, -1)
    assert parse(head + bytes((MAX_TAGS,)) + b"\0\0" * MAX_TAGS).api_key == 18
    with pytest.raises(DecodeError, match="tagged fields"):
        parse(head + bytes((MAX_TAGS + 1,)) + b"\0\0" * (MAX_TAGS + 1))


@pytest.mark.parametrize("version", [8, 9])
def test_every_truncation_is_refused(version: int) -> None:
    head = request_header_bytes(PRODUCE, version, 7, "client")
    for size in range(len(head)):
        with pytest.raises(DecodeError):
            parse(head[:size])


@pytest.mark.parametrize("size", [-2, -32768])
def test_a_client_id_has_a_length_or_is_null(size: int) -> None:
    with pytest.raises(DecodeError):
        parse(pack(">hhih", 0, 8, 7, size) + b"body")


def test_a_client_id_in_another_encoding_is_read_as_kafka_reads_it() -> None:
    name = "Müller".encode("latin-1")
    assert parse(pack(">hhih", 0, 8, 7, len(name)) + name).client_id == "M\ufffdller"


@pytest.mark.parametrize(
    ("key", "version"), [(0, 14), (0, -1), (1, 19), (6, 0), (99, 0), (-1, 0), (18, 5), (18, -1)]
)
def test_what_is_not_served_says_who_asked_for_what(key: int, version: int) -> None:
    with pytest.raises(UnsupportedVersion) as refusal:
        parse(pack(">hhih", key, version, 7, 2) + b"me" + b"anything")
    error = refusal.value
    assert (error.api_key, error.api_version) == (key, version)
    assert (error.correlation_id, error.client_id) == (7, "me")
    assert error.is_api_versions == (key == 18)


def test_only_what_is_listed_is_served() -> None:
    frame = memoryview(request_header_bytes(PRODUCE, 9, 7, None))
    with pytest.raises(UnsupportedVersion):
        parse_request_header(frame, versions_of([API_VERSIONS]))


def test_an_answer_has_a_tag_section_from_the_first_flexible_version_on() -> None:
    assert response_header(PRODUCE, 8, 7) == b"\0\0\0\7"
    assert response_header(PRODUCE, 9, 7) == b"\0\0\0\7\0"


@pytest.mark.parametrize("version", range(5))
def test_the_answer_to_api_versions_never_has(version: int) -> None:
    assert response_header(API_VERSIONS, version, -1) == b"\xff\xff\xff\xff"


@given(st.binary(max_size=40))
def test_noise_is_a_header_or_a_decode_error(noise: bytes) -> None:
    try:
        header = parse(noise)
    except DecodeError:
        return
    assert header.body_position <= len(noise)
