"""Compiled and as source, the walkers answer alike, and no bytes make them fail otherwise."""

from array import array
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records import scan, walk
from protocol.records.batch import HEADER_BYTES, patch_offset_and_epoch
from protocol.records.builder import NewRecord, build_batch
from tests.support.records.record_walkers import from_source

SOURCE_WALK, SOURCE_SCAN = from_source("walk"), from_source("scan")
INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(-2, 50) | st.integers(-(2**61), 2**61)
FIELDS = st.none() | st.binary(max_size=80)
HEADERS = st.lists(st.tuples(st.text(max_size=5), FIELDS), max_size=3)
ROWS = st.lists(st.tuples(TIMES, FIELDS, FIELDS, HEADERS), min_size=1, max_size=8)


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Up to three bytes changed, then perhaps a cut, perhaps a tail."""
    octets = bytearray(data)
    places = st.lists(st.integers(0, len(octets) - 1), max_size=3) if octets else st.just([])
    for at in draw(places):
        octets[at] = draw(st.integers(0, 255) | st.sampled_from([0, 1, 2, 127, 128, 255]))
    cut = draw(st.just(len(octets)) | st.integers(0, len(octets)))
    return bytes(octets[:cut]) + draw(st.just(b"") | st.binary(max_size=12))


@st.composite
def payloads(draw: st.DrawFn) -> tuple[bytes, int]:
    """A payload and the count that goes with it, or used to."""
    rows: list[NewRecord] = draw(ROWS)
    payload = draw(damaged(bytes(build_batch(rows)[HEADER_BYTES:])) | st.binary(max_size=60))
    return payload, draw(st.just(len(rows)) | st.integers(-2, 10))


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """A few batches in a row, sound or not."""
    data = bytearray()
    for at in range(draw(st.integers(0, 4))):
        batch = build_batch(draw(ROWS), base_offset=at * 10)
        if draw(st.booleans()):
            patch_offset_and_epoch(batch, 0, draw(INT64), draw(st.integers(-5, 5)))
        data += batch
    return draw(damaged(bytes(data)) | st.binary(max_size=150))


def outcome(function: Callable[..., object], *arguments: object) -> object:
    """What a call gives or, by kind and text, the decode error that it raises."""
    try:
        return function(*arguments)
    except DecodeError as error:
        return type(error), str(error)


@given(payloads(), INT64 | TIMES, INT64, INT64)
def test_checks_agree(case: tuple[bytes, int], base: int, low: int, high: int) -> None:
    arguments = (*case, base, low, high)

    assert outcome(walk.check_records, *arguments) == outcome(SOURCE_WALK.check_records, *arguments)


@given(payloads(), INT64 | TIMES)
def test_outlines_agree(case: tuple[bytes, int], base: int) -> None:
    payload, count = case
    found = []
    for module in (walk, SOURCE_WALK):
        rows = array("q", bytes(64 * max(count, 0)))
        found.append((outcome(module.outline_records, payload, 0, 0, count, base, rows), rows))

    assert found[0] == found[1]


@given(payloads(), INT64 | TIMES, INT64 | TIMES, TIMES, TIMES)
def test_searches_agree(
    case: tuple[bytes, int], base_offset: int, base: int, target: int, min_offset: int
) -> None:
    arguments = (*case, base_offset, base, target, min_offset)

    assert outcome(walk.find_timestamp, *arguments) == outcome(
        SOURCE_WALK.find_timestamp, *arguments
    )


@given(
    payloads(), INT64 | TIMES, INT64 | TIMES, st.tuples(TIMES, INT64, TIMES, INT64, st.booleans())
)
def test_counts_between_agree(
    case: tuple[bytes, int], base_offset: int, base: int, bounds: tuple[int, int, int, int, bool]
) -> None:
    arguments = (*case, base_offset, base, *bounds)

    assert outcome(walk.find_between, *arguments) == outcome(SOURCE_WALK.find_between, *arguments)


@given(ROWS, TIMES, TIMES, st.integers(-1, 9), st.integers(-1, 9), st.booleans())
def test_counts_between_are_those_of_a_list(  # noqa: PLR0917
    rows: list[NewRecord], low: int, high: int, first: int, last: int, with_untimed: bool
) -> None:
    batch = build_batch(rows)
    base = int.from_bytes(batch[27:35], "big", signed=True)
    wanted = [
        (offset, at)
        for offset, (at, *_) in enumerate(rows)
        if first <= offset <= last and (with_untimed if at == -1 else low <= at <= high)
    ]
    found = walk.find_between(
        batch[HEADER_BYTES:], len(rows), 0, base, low, high, first, last, with_untimed
    )

    assert found == ((len(wanted), *wanted[0], wanted[-1][0]) if wanted else (0, 0, 0, 0))


@given(logs(), st.integers(0, 200))
def test_scans_agree(data: bytes, position: int) -> None:
    assert scan.scan_batches(data, position) == SOURCE_SCAN.scan_batches(data, position)
    assert scan.find_next_batch(data, position) == SOURCE_SCAN.find_next_batch(data, position)


@given(logs(), INT64 | st.integers(-3, 60))
def test_skips_agree(data: bytes, wanted: int) -> None:
    for name in ("skip_to_offset", "skip_to_timestamp"):
        built, source = getattr(scan, name), getattr(SOURCE_SCAN, name)
        assert outcome(built, data, 0, wanted) == outcome(source, data, 0, wanted)
    assert outcome(scan.resume_position, data, 0) == outcome(SOURCE_SCAN.resume_position, data, 0)


@given(logs())
def test_a_scan_accounts_for_every_byte_it_passed(data: bytes) -> None:
    result = scan.scan_batches(data, 0)

    position = 0
    for row in result.batches:
        assert row[0] == position
        position += row[5]
    assert position == result.position
    assert (result.stop == "end") == (position == len(data))
    assert (result.stop == "partial") == (result.needed > 0)
    assert (result.stop == "corrupt") == bool(result.fault)
