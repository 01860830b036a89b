"""The table of error codes is Kafka's, and errors say what and where."""

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from protocol.errors import DecodeError, ErrorCode, KafkaError


def test_the_table_is_that_of_kafka() -> None:
    ours = {(code.name.lower(), int(code), code.retriable) for code in ErrorCode}
    assert ours == {(code.name, int(code.value), code.retriable) for code in KioErrorCode}


def test_codes_have_no_gap() -> None:
    assert sorted(map(int, ErrorCode)) == list(range(-1, 134))


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_every_code_says_something(code: ErrorCode) -> None:
    assert code.description
    assert ErrorCode(int(code)) is code


def test_a_kafka_error_speaks_for_its_code_unless_told_more() -> None:
    plain = KafkaError(ErrorCode.INVALID_TIMESTAMP)
    assert (plain.code, plain.message) == (32, ErrorCode.INVALID_TIMESTAMP.description)
    told = KafkaError(ErrorCode.INVALID_CONFIG, "retention.ms: not a number")
    assert told.message == "retention.ms: not a number"
    assert str(told) == "INVALID_CONFIG: retention.ms: not a number"


def test_a_decode_error_names_the_place_when_it_is_known() -> None:
    assert str(DecodeError("truncated", 7)) == "truncated (at byte 7)"
    assert str(DecodeError("truncated")) == "truncated"
    assert DecodeError("truncated", 7).position == 7
