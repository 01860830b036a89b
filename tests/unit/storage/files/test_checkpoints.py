"""Offset checkpoints: Kafka's text, replaced whole, and never half believed."""

import pytest
from crc32c import crc32c

from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import PartitionName
from storage.files.start_offsets import StartOffsets
from tests.support.disk.simdisk import SimFileSystem

PATH = "/recovery-point-offset-checkpoint"


def checkpoint(fs: SimFileSystem | None = None, text: str | None = None) -> OffsetCheckpoint:
    fs = fs or SimFileSystem()
    if text is not None:
        fs.write_atomically(PATH, text.encode())
    return OffsetCheckpoint(fs, PATH)


def test_the_text_is_kafkas_with_a_checksum_in_the_last_row() -> None:
    fs = SimFileSystem()
    checkpoint(fs).save({("orders", 0): 42, ("a.b_c-d", 11): 2**63 - 1})
    body = f"0\n3\norders 0 42\na.b_c-d 11 {2**63 - 1}\n"
    assert fs.read_text(PATH) == f"{body}#crc32c 0 {crc32c(body.encode())}\n"


def test_any_changed_bit_is_told_or_changes_no_offset() -> None:
    fs, offsets = SimFileSystem(), {("t1", 0): 1234567, ("t2", 3): 89}
    checkpoint(fs).save(offsets)
    whole = fs.read_bytes(PATH)
    told = 0
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        fs.write_atomically(PATH, bytes(changed))
        load = checkpoint(fs).load()
        told += load.damage is not None
        assert load.damage or {name: load.offsets.get(name) for name in offsets} == offsets, bit
    assert told > 4 * len(whole)


def test_a_file_that_a_kafka_wrote_later_is_believed() -> None:
    """It takes the checksum for a partition that is gone, and leaves it out."""
    file = checkpoint(text="0\n1\norders 0 41\n")
    assert file.load() == ({("orders", 0): 41}, None, False)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (b"0\n1\nt 0 4\n", 4),  # a Kafka's
        (b"0\n2\nt 0 9\n#crc32c 0 7\n", 5),  # ours, damaged
        (b"0\n2\nt 0 5\x08#crc32c 0 7\n", 5),  # the same, at the end of a line
        (b"0\n9\nt 0 4\n", None),  # a Kafka's, damaged: the copy may be of topics before it
    ],
)
def test_start_offsets_are_taken_from_the_copy_when_the_file_is_a_damaged_one_of_ours(
    text: bytes, start: int | None
) -> None:
    fs = SimFileSystem()
    StartOffsets(fs, "").save({("t", 0): 5})
    fs.write_atomically("/log-start-offset-checkpoint", text)
    load = StartOffsets(fs, "").load()
    assert load.offsets.get(PartitionName("t", 0)) == start
    assert (load.damage is None) == (start == 4)


def test_what_was_saved_is_loaded() -> None:
    offsets = {("orders", 0): 42, ("orders", 1): 0}
    file = checkpoint()
    file.save(offsets)
    assert file.load() == (offsets, None, True)
    file.save({})
    assert file.load() == ({}, None, True)


def test_a_missing_file_and_one_that_kafka_has_yet_to_fill_are_no_damage() -> None:
    assert checkpoint().load() == ({}, None, False)
    assert checkpoint(text="").load() == ({}, None, False)


@pytest.mark.parametrize(
    "text",
    ["0\n", "1\n0\n", "x\n0\n", "0\n2\na 0 1\n", "0\n0\na 0 1\n", "0\n1\na 0\n",
     "0\n1\na 0 1 2\n", "0\n1\na x 1\n", "0\n1\na 0 -1\n", "0\n1\na 0 \u0661\n", "0\n-1\n",
     "0\n1\n\na 0 1\n", "\0\0\0\0", "0\n1\na 0 1\0\n"],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_absent_and_told(text: str) -> None:
    offsets, damage, _ = checkpoint(text=text).load()
    assert offsets == {}
    assert damage is not None
    assert PATH in damage


def test_bytes_that_are_no_text_are_damage() -> None:
    fs = SimFileSystem()
    fs.write_atomically(PATH, b"0\n1\n\xff\xfe 0 \xff\n")
    assert checkpoint(fs).load().damage is not None


def test_a_power_cut_leaves_the_old_checkpoint_or_the_new() -> None:
    fs = SimFileSystem()
    file = checkpoint(fs)
    file.save({("t", 0): 1})
    seen = []
    fs.on_call = lambda call: seen.extend(
        checkpoint(fs.after_crash(seed)).load() for seed in range(20)
    )
    file.save({("t", 0): 2})
    assert len(seen) >= 60
    assert all(load in (({("t", 0): 1}, None, True), ({("t", 0): 2}, None, True)) for load in seen)
    fs.on_call = None
    assert all(checkpoint(fs.after_crash(s)).load().offsets == {("t", 0): 2} for s in range(20))
