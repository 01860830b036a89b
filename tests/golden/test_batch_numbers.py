"""Bytes that were computed from the rules by hand, semantics.md 13: what we build must be these."""

import lz4.frame

from protocol.records.batch import read_header, stamp_log_append_time
from protocol.records.builder import build_batch
from protocol.records.compression import Codec, deflate

GOLDEN = bytes.fromhex(
    "0000000000000000"  # base offset
    "0000003c"  # length
    "00000000"  # leader epoch
    "02"  # magic
    "b36be244"  # CRC
    "0000"  # attributes
    "00000000"  # last offset delta
    "00000000000003e8"  # base timestamp 1000
    "00000000000003e8"  # max timestamp
    "ffffffffffffffff"  # producer id
    "ffff"  # producer epoch
    "ffffffff"  # base sequence
    "00000001"  # records
    "14"  # a record of ten bytes
    "00000001"  # attributes, timestamp delta, offset delta, null key
    "0874657374"  # "test"
    "00"  # headers
)


def test_one_record_is_72_bytes_with_its_known_crc() -> None:
    batch = build_batch([(1000, None, b"test")], leader_epoch=0)

    assert bytes(batch) == GOLDEN


def test_a_stamped_batch_changes_in_attributes_maximum_and_crc_only() -> None:
    batch = bytearray(GOLDEN)

    stamp_log_append_time(batch, 0, len(batch), 5000)

    header = read_header(batch)
    assert header.crc == 0xF6C77B6B
    assert (header.attributes, header.max_timestamp, header.base_timestamp) == (8, 5000, 1000)
    unchanged = [at for at in range(72) if at not in {*range(17, 23), *range(35, 43)}]
    assert [batch[at] for at in unchanged] == [GOLDEN[at] for at in unchanged]


def test_a_batch_built_as_stamped_is_the_same() -> None:
    batch = build_batch([(1000, None, b"test")], leader_epoch=0, log_append_time=5000)

    assert read_header(batch).crc == 0xF6C77B6B


def test_the_lz4_frame_header_is_kafkas() -> None:
    packed = deflate(Codec.LZ4, b"x" * 200_000)

    assert packed[:7] == bytes.fromhex("04224d186040") + b"\x82"
    assert lz4.frame.decompress(packed) == b"x" * 200_000


def test_the_snappy_stream_header_is_xerials() -> None:
    packed = deflate(Codec.SNAPPY, b"x")

    assert packed[:16] == bytes.fromhex("82534e4150505900" + "00000001" * 2)
