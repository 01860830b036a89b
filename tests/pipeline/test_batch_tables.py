"""Batches of all formats out of bytes that may be cut off or wrong: what is whole comes, and the
rest is told, whatever it is."""

import random

import numpy as np
import pytest

from pipeline.decode.batch_columns import BASE_OFFSET, COUNT
from pipeline.decode.columns import BatchOrigin
from pipeline.errors import DamagedLog
from pipeline.sources.batch_tables import Parts, parts_of
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.old_formats.legacy_builder import build_set

AT = 1_700_000_000_000
ORIGIN = BatchOrigin("t", 3)


def pieces() -> list[bytes]:
    """Sets of both old formats between batches, as an old broker's answer may have them."""
    made, offset = [], 0
    for number in range(30):
        rows = [(offset + at, AT + at, b"k", bytes(20)) for at in range(4)]
        codec = (Codec.NONE, Codec.GZIP)[number % 2]
        if number % 3 == 2:
            made.append(bytes(build_batch([row[1:] for row in rows], base_offset=offset)))
        else:
            made.append(build_set(rows, number % 3, codec=codec))
        offset += 4
    return made


def offsets(parts: Parts) -> list[int]:
    found: list[int] = []
    for part in parts.batches:
        for base, count in part.table.rows[:, [BASE_OFFSET, COUNT]]:
            found += range(base, base + count)
    return found


def test_what_is_whole_comes_wherever_it_is_cut_off() -> None:
    parts = pieces()
    data = b"".join(parts)
    ends = np.cumsum([len(part) for part in parts])
    whole = [4 * int((ends <= cut).sum()) for cut in range(len(data) + 1)]
    for cut in (*range(0, len(data), 7), len(data)):
        found = parts_of(memoryview(data)[:cut], ORIGIN)
        assert found.fault is None
        assert offsets(found)[: whole[cut]] == list(range(whole[cut]))
        assert len(offsets(found)) - whole[cut] in range(4)  # some messages of a set


@pytest.mark.parametrize("seed", range(3))
def test_a_bit_that_flips_is_told_or_hides_nothing_before_it(seed: int) -> None:
    dice = random.Random(seed)
    parts = pieces()
    data = b"".join(parts)
    ends = np.cumsum([len(part) for part in parts])
    for _ in range(300):
        at = dice.randrange(len(data))
        bad = bytearray(data)
        bad[at] ^= 1 << dice.randrange(8)
        found = parts_of(memoryview(bad), ORIGIN)
        before = 4 * int((ends <= at).sum())
        assert offsets(found)[:before] == list(range(before))
        if found.fault is not None:
            assert isinstance(found.fault, DamagedLog)
            assert found.fault.message.startswith("t-3, at byte ")
