"""Messages of formats 0 and 1 that were computed by hand, semantics.md 13, both ways."""

import pytest

from protocol.records.batch import read_header
from protocol.records.old_formats.convert import down_convert, up_convert
from protocol.records.old_formats.legacy import read_messages
from protocol.records.old_formats.legacy_builder import build_message

MESSAGE_V0 = bytes.fromhex(
    "0000000000000000"  # offset
    "00000012"  # size
    "592a4787"  # CRC-32
    "0000"  # magic, attributes
    "ffffffff"  # null key
    "0000000474657374"  # "test"
)
MESSAGE_V1 = bytes.fromhex(
    "0000000000000000"  # offset
    "0000001a"  # size
    "bf6be29f"  # CRC-32
    "0100"  # magic, attributes
    "00000000000003e8"  # time 1000
    "ffffffff"  # null key
    "0000000474657374"  # "test"
)
BATCH = bytes.fromhex(
    "0000000000000000" "0000003c" "ffffffff" "02" "b36be244" "0000" "00000000"
    "00000000000003e8" "00000000000003e8" "ffffffffffffffff" "ffff" "ffffffff" "00000001"
    "14" "00000001" "0874657374" "00"
)  # fmt: skip


@pytest.mark.parametrize("message", [MESSAGE_V0, MESSAGE_V1])
def test_the_known_messages_are_built_and_read(message: bytes) -> None:
    magic = message[16]
    assert len(message) == (38 if magic else 30)
    assert build_message(0, magic, 1000, None, b"test") == message
    (read,) = read_messages(memoryview(message))
    assert read == (0, 0, 1000 if magic else -1, None, b"test")


def test_format_1_becomes_the_known_batch() -> None:
    assert up_convert(memoryview(MESSAGE_V1)) == BATCH


def test_format_0_becomes_a_batch_without_times() -> None:
    header = read_header(up_convert(memoryview(MESSAGE_V0)))
    assert (header.base_timestamp, header.max_timestamp) == (-1, -1)


@pytest.mark.parametrize("message", [MESSAGE_V0, MESSAGE_V1])
def test_the_known_batch_becomes_the_known_message(message: bytes) -> None:
    batch = memoryview(BATCH)
    converted = down_convert(batch, read_header(batch), message[16], from_offset=0, room=100)
    assert (converted.messages, converted.is_whole) == (message, True)
