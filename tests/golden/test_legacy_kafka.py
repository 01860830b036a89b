"""Sets and batches that Kafka 3.9.1 made: each conversion in each direction, format and codec.

`kafka_3_9_sets.txt` holds, from kafka-clients 3.9.1, three records as an old producer sends them
(`sent`), as the log has them (`stored`), and what MemoryRecords.downConvert makes of that for an
old consumer (`fetched`). Packed bytes may differ between libraries; all around them may not.
"""

from pathlib import Path

import pytest

from protocol.records.batch import read_header
from protocol.records.compression import Codec
from protocol.records.old_formats.convert import down_convert, up_convert
from protocol.records.old_formats.legacy import LegacyMessage, read_messages
from protocol.records.record import Record, read_records

LINES = [
    line.split() for line in (Path(__file__).parent / "kafka_3_9_sets.txt").read_text().splitlines()
]
RECORDS = [(1000, b"k", b"first"), (999, None, b"second"), (1001, b"z", None)]
CODECS = ["none", "gzip", "snappy", "lz4"]
KINDS = ["CreateTime", "LogAppendTime"]
both = pytest.mark.parametrize("magic", [0, 1])
with_codecs = pytest.mark.parametrize("codec", CODECS)


def kafkas(*words: object) -> bytes:
    """The bytes of the one line that begins with these words."""
    (found,) = [line[-1] for line in LINES if line[:-1] == [str(word) for word in words]]
    return bytes.fromhex(found)


def messages(data: bytes | bytearray) -> list[LegacyMessage]:
    return [
        m._replace(key=m.key and bytes(m.key), value=m.value and bytes(m.value))
        for m in read_messages(memoryview(data))
    ]


@both
@with_codecs
def test_what_an_old_producer_sends(magic: int, codec: str) -> None:
    batch = memoryview(up_convert(memoryview(kafkas("sent", magic, codec))))

    assert read_header(batch).codec is Codec[codec.upper()]
    assert read_records(batch) == [
        Record(offset, time if magic else -1, key, value)
        for offset, (time, key, value) in enumerate(RECORDS)
    ]


def test_an_uncompressed_set_becomes_kafkas_batch() -> None:
    stored = bytearray(kafkas("stored", 2, "none", "CreateTime"))
    stored[:8] = bytes(8)  # where it lies is for the log to say
    assert up_convert(memoryview(kafkas("sent", 1, "none"))) == stored


@both
@with_codecs
@pytest.mark.parametrize("kind", KINDS)
def test_what_an_old_consumer_gets(magic: int, codec: str, kind: str) -> None:
    batch = memoryview(kafkas("stored", 2, codec, kind))
    theirs = kafkas("fetched", magic, codec, kind)

    ours = down_convert(batch, read_header(batch), magic, from_offset=0, room=1 << 20).messages

    if codec == "none":
        assert ours == theirs
    head_ends = 26 if magic else 18
    assert ours[:8] == theirs[:8]
    assert ours[16:head_ends] == theirs[16:head_ends]
    assert messages(ours) == messages(theirs)
    stamped = kind == "LogAppendTime"
    assert [m[2:] for m in messages(ours)] == [
        ((5000 if stamped else time) if magic else -1, key, value) for time, key, value in RECORDS
    ]
