"""Records written anew: other times, more headers, some left out; the rest stays to the byte."""

from importlib import import_module
from types import ModuleType

import pytest

from protocol.records.mistimed import BAD_VERDICTS, Limits
from protocol.records.rewrite import (
    ALL,
    BAD,
    GOOD,
    Rewriting,
    header_bytes,
    header_name,
    marks_of,
)
from tests.support.records.mistimed_records import SOURCE, judged, payload_of, records_of, rewritten

NOW = 1_760_000_000_000
HOUR = 3_600_000
LIMITS = Limits(NOW, NOW - HOUR, NOW + HOUR, NOW - HOUR, NOW + HOUR)
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
HEADERS = [("a", b"1"), ("empty", b""), ("null", None)]
ROWS = [
    (NOW, b"k0", b"v0", HEADERS),
    (NOW * 1000, None, b"v1", HEADERS),
    (NOW + 5, b"", None),
    (-1, b"k3", b"x" * 300),
    (NOW // 1000, b"k4", b""),
]
NO_MARKS = marks_of([b""] * BAD_VERDICTS)


@pytest.fixture(params=["built", "source"])
def rewrite(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "built":
        return import_module("protocol.records.rewrite")
    return SOURCE["rewrite"]


def plan(takes: int, low: int = NOW - HOUR, high: int = NOW + HOUR, **changed: object) -> Rewriting:
    usual = Rewriting(
        takes, NOW, low, high, *NO_MARKS, 0, header_name("claimed"), b"", 0, renumbers=False
    )
    return usual._replace(**changed)  # type: ignore[arg-type]


def run(rewrite: ModuleType, rows: list, rewriting: Rewriting, chunk: int = 4):  # type: ignore[no-untyped-def, type-arg]
    payload = payload_of(rows)
    walk, judge = import_module("protocol.records.walk"), import_module("protocol.records.mistimed")
    seen = judged(walk, judge, payload, len(rows), rows[0][0], LIMITS, chunk)
    out, written = rewritten(rewrite, payload, seen, rewriting)
    return records_of(out, written, rewriting.base_timestamp)


def test_clamped_records_get_the_nearest_bound_and_their_claim(rewrite: ModuleType) -> None:
    records = run(rewrite, ROWS, plan(ALL))
    assert [record.timestamp for record in records] == [NOW, NOW + HOUR, NOW + 5, -1, NOW - HOUR]
    assert [record.offset for record in records] == [0, 1, 2, 3, 4]
    assert records[1].headers == (*HEADERS, ("claimed", str(NOW * 1000).encode()))
    assert records[4].headers == (("claimed", str(NOW // 1000).encode()),)
    before = records_of(payload_of(ROWS), 5, NOW)
    assert [(r.key, r.value) for r in records] == [(r.key, r.value) for r in before]
    assert [records[at].headers for at in (0, 2, 3)] == [before[at].headers for at in (0, 2, 3)]


@pytest.mark.parametrize("claimed", [INT64_MIN, INT64_MIN + 1, -2, 0, 9, 10, INT64_MAX])
def test_any_claim_is_written_in_decimal(rewrite: ModuleType, claimed: int) -> None:
    payload = payload_of([(0, b"k", b"v")])
    walk = import_module("protocol.records.walk")
    limits = LIMITS._replace(low=1 << 40, high=1 << 41)
    seen = judged(walk, import_module("protocol.records.mistimed"), payload, 1, claimed, limits)
    out, written = rewritten(rewrite, payload, seen, plan(ALL, NOW, NOW))
    record = records_of(out, written, NOW)[0]
    assert record.timestamp == NOW
    assert record.headers == (("claimed", str(claimed).encode()),)


def test_those_that_stay_keep_their_offsets(rewrite: ModuleType) -> None:
    records = run(rewrite, ROWS, plan(GOOD))
    assert [record.offset for record in records] == [0, 2, 3]
    assert [record.value for record in records] == [b"v0", None, b"x" * 300]
    assert [record.timestamp for record in records] == [NOW, NOW + 5, -1]


@pytest.mark.parametrize("chunk", [1, 2, 5])
def test_those_that_go_are_counted_anew_and_carry_marks(rewrite: ModuleType, chunk: int) -> None:
    why = header_bytes("why", "naïve")
    marks, ends = marks_of([why] * BAD_VERDICTS)
    rewriting = plan(
        BAD, NOW, NOW, marks=marks, mark_ends=ends, mark_headers=1,
        offset_name=header_name("offset"), base_offset=1000, renumbers=True,
    )  # fmt: skip
    records = run(rewrite, ROWS, rewriting, chunk)
    assert [record.offset for record in records] == [0, 1]
    assert [record.timestamp for record in records] == [NOW, NOW]
    assert records[0].headers == (
        *HEADERS,
        ("why", "naïve".encode()),
        ("claimed", str(NOW * 1000).encode()),
        ("offset", b"1001"),
    )
    assert dict(records[1].headers)["offset"] == b"1004"


def test_very_many_headers_grow_by_one(rewrite: ModuleType) -> None:
    many = [("h", b"")] * 63
    records = run(rewrite, [(NOW * 1000, b"k", b"v", many)], plan(ALL))
    assert len(records[0].headers) == 64


def test_nothing_is_left_when_all_are_bad(rewrite: ModuleType) -> None:
    assert run(rewrite, [(0, b"k", b"v")] * 9, plan(GOOD)) == []
