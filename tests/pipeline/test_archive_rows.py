"""Where each record of a batch goes: tables, days, reasons; values against a schema."""

import json
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BadOption
from pipeline.sinks.archive.rows import READ, shares
from pipeline.sinks.archive.values import TableKind
from pipeline.transforms.event_time import DAY_MS, TimeLimits, is_good, reasons_of
from pipeline.transforms.json_values import parse, read_schema

NOW = 1_790_000_000_000
LIMITS = TimeLimits(NOW, NOW - 3650 * DAY_MS, NOW + DAY_MS)
FIELDS = st.sampled_from(["n", "ok", "x", "s", "in", "a", "z"])
SCHEMA = read_schema(
    '{"n": "long", "ok": "boolean", "x": "double", "s": "string", "in": {"a": ["int"]},'
    ' "at": "timestamp", "on": "date"}'
)
ANY = st.one_of(
    st.none(),
    st.binary(max_size=8),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.text(max_size=4)),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(FIELDS, inner, max_size=4),
        max_leaves=8,
    ).map(lambda each: json.dumps(each).encode()),
)  # fmt: skip


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40))
def test_a_time_is_good_or_has_a_reason(times: list[int]) -> None:
    column = np.array(times, np.int64)
    good = is_good(column, LIMITS)
    expected = [LIMITS.low_ms <= each <= LIMITS.high_ms for each in times]
    assert (expected if good is None else good.tolist()) == expected
    bad = [each for each, fine in zip(times, expected, strict=True) if not fine]
    assert all(reasons_of(np.array(bad, np.int64), LIMITS))


@given(st.lists(ANY, max_size=12), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12))
def test_every_record_is_in_one_share(values: list[bytes | None], times: list[int]) -> None:
    rows = [
        {"offset": n, "partition": 0, "topic": "t", "value": value, "timestampMs": time,
         "timestamp": 0, "timestampType": 0, "producerId": -1}
        for n, (value, time) in enumerate(zip(values, times, strict=False))
    ]  # fmt: skip
    batch = pa.RecordBatch.from_pylist(rows, READ)
    found = list(shares(batch, LIMITS, SCHEMA))
    offsets = [offset for share in found for offset in share.offsets.tolist()]
    assert sorted(offsets) == list(range(len(rows)))
    for share in found:
        assert share.rows.num_rows == len(share.offsets)
        for offset, time in zip(share.offsets.tolist(), share.times.tolist(), strict=True):
            assert time == rows[offset]["timestampMs"]
            in_range = LIMITS.low_ms <= time <= LIMITS.high_ms
            assert in_range == (share.kind is not TableKind.QUARANTINE)
            if share.kind is TableKind.RECORDS:
                assert share.day == time // DAY_MS


@pytest.mark.parametrize("length", [1, 7, 5000])
@pytest.mark.parametrize("days", [1, 2, 3])
def test_a_day_s_records_stay_in_order(length: int, days: int) -> None:
    """However long the stretches of a day are, and the whole of a batch may be one."""
    times = [NOW + n // length % days * DAY_MS - n for n in range(5000)]
    texts = [b"%d" % n * (n % 9) for n in range(5000)]
    rows = [
        {"offset": n, "partition": 0, "topic": "t", "value": text, "timestampMs": time,
         "timestamp": 0, "timestampType": 0, "producerId": -1}
        for n, (time, text) in enumerate(zip(times, texts, strict=True))
    ]  # fmt: skip
    limits = TimeLimits(NOW, NOW - DAY_MS, NOW + 2 * DAY_MS)

    found = list(shares(pa.RecordBatch.from_pylist(rows, READ), limits))

    assert [share.day for share in found] == sorted({time // DAY_MS for time in times})
    for share in found:
        there = [n for n, time in enumerate(times) if time // DAY_MS == share.day]
        assert share.offsets.tolist() == there
        assert share.times.tolist() == [times[n] for n in there]
        assert share.rows["value"].to_pylist() == [texts[n] for n in there]


@given(st.lists(ANY, max_size=10))
def test_values_do_not_depend_on_their_neighbours(values: list[bytes | None]) -> None:
    together = parse(pa.array(values, pa.binary()), SCHEMA)
    for at, value in enumerate(values):
        alone = parse(pa.array([value], pa.binary()), SCHEMA)
        assert bool(together.errors[at]) == bool(alone.errors[0]), value
        assert together.data[at].as_py() == alone.data[0].as_py()


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (b'{"n": 1, "ok": true, "x": 1.5, "s": "a", "in": {"a": [1, 2]}}', {"n": 1, "s": "a"}),
        (b"{}", {"n": None}),
        (b'{"n": 5, "more": [1]}', {"n": 5}),
        (b'{"n": "5"}', None),
        (b'{"n": 9223372036854775808}', None),
        (b"[1]", None),
        (b"null", None),
        (b'{"n": true}', None),
        (b'{"x": NaN}', None),
        (b'{"x": 3}', {"x": 3.0}),
        (b'{"s": "\\ud800"}', None),
        (b'{"at": "2026-03-01T12:00:00+02:00"}', {"at": datetime(2026, 3, 1, 10, tzinfo=UTC)}),
        (b'{"at": "noon"}', None),
        (b'{"on": "2026-03-01"}', {"on": date(2026, 3, 1)}),
        (b"[" * 100_000, None),
        (b'{"n": 1', None),
        (b"\xff", None),
        (b"", None),
    ],
)
def test_values_that_fit_and_values_that_do_not(value: bytes, fits: dict[str, Any] | None) -> None:
    parsed = parse(pa.array([value, b"{}"], pa.binary()), SCHEMA)
    if fits is None:
        assert parsed.errors[0]
        assert parsed.data[0].as_py() is None
    else:
        found = parsed.data[0].as_py()
        assert {name: found[name] for name in fits} == fits


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"a": "number"}', '{"a": []}', "no JSON", '{"a": 5}']
)
def test_a_schema_that_cannot_be_read(text: str) -> None:
    with pytest.raises(BadOption, match="schema of values"):
        read_schema(text)
