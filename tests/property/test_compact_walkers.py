"""Compiled and as source, compaction keeps the same records of any payload, damaged or not."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records import compact
from protocol.records.batch import HEADER_BYTES
from protocol.records.builder import NewRecord, build_batch
from tests.support.records.record_walkers import from_source

SOURCE = from_source("compact")
INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(-2, 50) | st.integers(-(2**61), 2**61)
FIELDS = st.none() | st.binary(max_size=12)
ROWS = st.lists(st.tuples(TIMES, FIELDS, FIELDS), min_size=1, max_size=12)


@st.composite
def payloads(draw: st.DrawFn) -> tuple[bytes, int]:
    """A payload, some bytes of it changed or cut, and the count that goes with it, or used to."""
    rows: list[NewRecord] = draw(ROWS)
    octets = bytearray(build_batch(rows)[HEADER_BYTES:])
    for at in draw(st.lists(st.integers(0, len(octets) - 1), max_size=3)):
        octets[at] = draw(st.integers(0, 255) | st.sampled_from([0, 1, 2, 127, 128, 255]))
    cut = draw(st.just(len(octets)) | st.integers(0, len(octets)))
    return bytes(octets[:cut]), draw(st.just(len(rows)) | st.integers(-2, 14))


def outcome(function: Callable[..., object], *arguments: object) -> object:
    try:
        return function(*arguments)
    except DecodeError as error:
        return type(error), str(error)


@given(
    payloads(),
    ROWS,
    INT64 | TIMES,
    st.integers(0, 40),
    st.tuples(st.booleans(), st.integers(2, 20)),
)
def test_both_keep_the_same(
    case: tuple[bytes, int], others: list[NewRecord], base: int, before: int, more: tuple[bool, int]
) -> None:
    answers = []
    drop, slots = more
    for module in (compact, SOURCE):
        keys = module.KeyMap(bytearray(24 * slots), 0.9, bytes(16))
        later = bytes(build_batch(others)[HEADER_BYTES:])
        out = bytearray(len(case[0]))
        answers.append((
            outcome(module.map_keys, keys, *case, 10, 12),
            outcome(module.map_keys, keys, later, len(others), 30, 0),
            len(keys),
            outcome(module.keep_records, keys, *case, 10, base, before, drop, out),
            bytes(out),
        ))  # fmt: skip
    assert answers[0] == answers[1]
