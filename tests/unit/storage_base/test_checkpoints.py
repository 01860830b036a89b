"""Offset checkpoints: Kafka's text, replaced whole, and never half believed."""

import pytest

from storage.checkpoints import OffsetCheckpoint
from tests.support.simdisk import SimFileSystem

PATH = "/recovery-point-offset-checkpoint"


def checkpoint(fs: SimFileSystem | None = None, text: str | None = None) -> OffsetCheckpoint:
    fs = fs or SimFileSystem()
    if text is not None:
        fs.write_atomically(PATH, text.encode())
    return OffsetCheckpoint(fs, PATH)


def test_the_text_is_kafkas() -> None:
    fs = SimFileSystem()
    checkpoint(fs).save({("orders", 0): 42, ("a.b_c-d", 11): 2**63 - 1})
    assert fs.read_text(PATH) == f"0\n2\norders 0 42\na.b_c-d 11 {2**63 - 1}\n"


def test_what_was_saved_is_loaded() -> None:
    offsets = {("orders", 0): 42, ("orders", 1): 0}
    file = checkpoint()
    file.save(offsets)
    assert file.load() == (offsets, None)
    file.save({})
    assert file.load() == ({}, None)


def test_a_missing_file_and_one_that_kafka_has_yet_to_fill_are_no_damage() -> None:
    assert checkpoint().load() == ({}, None)
    assert checkpoint(text="").load() == ({}, None)


@pytest.mark.parametrize(
    "text",
    ["0\n", "1\n0\n", "x\n0\n", "0\n2\na 0 1\n", "0\n0\na 0 1\n", "0\n1\na 0\n",
     "0\n1\na 0 1 2\n", "0\n1\na x 1\n", "0\n1\na 0 -1\n", "0\n1\na 0 \u0661\n", "0\n-1\n",
     "0\n1\n\na 0 1\n", "\0\0\0\0", "0\n1\na 0 1\0\n"],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_absent_and_told(text: str) -> None:
    offsets, damage = checkpoint(text=text).load()
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
    assert all(load in (({("t", 0): 1}, None), ({("t", 0): 2}, None)) for load in seen)
    fs.on_call = None
    assert all(checkpoint(fs.after_crash(s)).load().offsets == {("t", 0): 2} for s in range(20))
