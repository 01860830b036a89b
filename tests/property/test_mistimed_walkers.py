"""Compiled and as source the dirty-time walkers answer alike, and as a plain model says."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from protocol.records import faults, mistimed, rewrite, walk
from protocol.records.mistimed import BAD_VERDICTS, Limits
from protocol.records.record import Record
from protocol.records.rewrite import Rewriting, header_bytes, header_name, marks_of
from tests.support.records.mistimed_records import SOURCE, judged, payload_of, records_of, rewritten

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
NOW = 1_760_000_000_000
TIMES = (
    st.integers(NOW - 10**7, NOW + 10**7)
    | st.integers(INT64_MIN // 2, INT64_MAX // 2)
    | st.sampled_from([-1, 0, NOW // 1000, NOW * 1000, NOW * 10**6])
)
FIELDS = st.none() | st.binary(max_size=20) | st.just(b"x" * 200)
HEADERS = st.lists(st.tuples(st.text(max_size=3), FIELDS), max_size=3)
ROWS = st.lists(st.tuples(TIMES, FIELDS, FIELDS, HEADERS), min_size=1, max_size=9)
LIMITS = Limits(NOW, NOW - 10**6, NOW + 10**6, NOW - 10**5, NOW + 10**5)
MARKS = marks_of([header_bytes("m", str(verdict)) for verdict in range(BAD_VERDICTS)])
CLAIMED = header_name("claimed")


def is_bad(record: Record) -> bool:
    return record.timestamp != -1 and not LIMITS.low <= record.timestamp <= LIMITS.high


def as_written(record: Record, verdict: int) -> Record:
    """The record as it comes out, its old offset still on it."""
    if not is_bad(record):
        return record
    more = (
        ("m", str(verdict).encode()),
        ("claimed", str(record.timestamp).encode()),
        ("o", str(7 + record.offset).encode()),
    )
    at = min(max(record.timestamp, LIMITS.low), LIMITS.high)
    return record._replace(timestamp=at, headers=(*record.headers, *more))


@given(ROWS, st.integers(0, 2), st.sampled_from([0, NOW]), st.booleans(), st.integers(1, 5))
def test_rewriting_agrees_with_the_model(
    rows: list[tuple],
    takes: int,
    base: int,
    renumbers: bool,
    chunk: int,  # type: ignore[type-arg]
) -> None:
    payload = payload_of(rows)
    seen = judged(walk, mistimed, payload, len(rows), rows[0][0], LIMITS, chunk)
    again = judged(
        SOURCE["walk"], SOURCE["mistimed"], payload, len(rows), rows[0][0], LIMITS, chunk
    )
    assert seen == again
    rewriting = Rewriting(
        takes, base, LIMITS.low, LIMITS.high, *MARKS, 1, CLAIMED, header_name("o"), 7, renumbers
    )
    out, written = rewritten(rewrite, payload, seen, rewriting)
    assert (out, written) == rewritten(SOURCE["rewrite"], payload, seen, rewriting)
    records = records_of(payload, len(rows), rows[0][0])
    expected = [
        as_written(record, seen.verdicts[index]) for index, record in enumerate(records)
        if takes == rewrite.ALL or is_bad(record) == (takes == rewrite.BAD)
    ]  # fmt: skip
    if renumbers:
        expected = [record._replace(offset=at) for at, record in enumerate(expected)]
    assert records_of(out, written, base) == expected


@given(ROWS)
def test_tallies_agree_with_the_model(rows: list[tuple]) -> None:  # type: ignore[type-arg]
    payload = payload_of(rows)
    seen = judged(walk, mistimed, payload, len(rows), rows[0][0], LIMITS)
    for verdict in range(1, mistimed.VERDICTS):
        count, first, last, worst, worst_at = seen.tally[verdict * 5 : verdict * 5 + 5]
        found = [index for index, each in enumerate(seen.verdicts) if each == verdict]
        assert count == len(found)
        if found:
            times = [rows[index][0] for index in found]
            ahead = (verdict - 1) // mistimed.GUESSES & 1
            assert (first, last) == (found[0], found[-1])
            assert worst == (max(times) if ahead else min(times)) == rows[worst_at][0]


@given(st.integers(INT64_MIN, INT64_MAX), st.integers(0, 2**45), *(2 * [TIMES]))
def test_guesses_agree(timestamp: int, now: int, low: int, high: int) -> None:
    found = mistimed.suspect(timestamp, now, low, high)
    assert found == SOURCE["mistimed"].suspect(timestamp, now, low, high)


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(INT64_MIN, INT64_MAX),
       st.integers(1, 14) | st.just(255)), max_size=8), st.booleans())  # fmt: skip
def test_lists_of_faults_agree(rows: list[tuple[int, int, int]], compact: bool) -> None:
    texts = faults.texts_of("at ", [f"; it is {verdict}" for verdict in range(15)], "no key")
    flat = array("q", [number for row in rows for number in row])
    built = faults.encode_faults(flat, texts, compact)
    assert built == SOURCE["faults"].encode_faults(flat, texts, compact)
