"""A run that dies between two tables, and another one later: by then the clock has gone on and
options have changed, so that records would be judged otherwise. Each is there once all the same.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import DataLost
from pipeline.sinks.archive import run as archive
from pipeline.sinks.archive.files import take_names
from pipeline.sinks.archive.run import Wishes
from pipeline.sinks.archive.values import (
    Commit,
    SchemaDiffers,
    TableChanged,
    TableKind,
    TableStanding,
)
from pipeline.transforms.json_values import read_schema
from tests.support.spark.archives import WISHES, archived, check, opened, rows_of, run, table_of
from tests.support.spark.made_up_records import DAY_MS, MadeUp, rows_between

TABLES = ("delta", "iceberg")
CHANGES = {
    "time passes": (0, WISHES),
    "two days pass": (2 * DAY_MS, WISHES._replace(oldest_ms=3 * DAY_MS)),
    "oldest": (0, WISHES._replace(oldest_ms=2 * DAY_MS)),
    "oldest of none": (0, WISHES._replace(oldest_ms=100_000 * DAY_MS)),
    "ahead": (0, WISHES._replace(ahead_ms=-2 * DAY_MS)),
    "ahead of none": (0, WISHES._replace(ahead_ms=100_000 * DAY_MS)),
    "small rounds": (0, WISHES._replace(round_bytes=1, oldest_ms=2 * DAY_MS)),
}
"""How much later the second run is, in ms, and what it is asked."""


class Died(BaseException):
    """The process has ended."""


def once(kind: str, root: Path, end: int) -> None:
    """Every offset of partition 0 is in one table, once."""
    seen = Counter(row["offset"] for _, row in rows_of(kind, root))
    wanted = {row.offset for row in rows_between(0, end)}
    lost, doubled = wanted - seen.keys(), [each for each, times in seen.items() if times > 1]
    assert (len(lost), len(doubled)) == (0, 0), f"{len(lost)} lost, {len(doubled)} doubled"
    assert seen.keys() == wanted


def later(monkeypatch: pytest.MonkeyPatch, span_ms: int) -> None:
    """The wall clock has gone on."""
    monkeypatch.setattr(archive.time, "time_ns", lambda: _now() + span_ms * 1_000_000)


_now = time.time_ns


def dies_behind(
    monkeypatch: pytest.MonkeyPatch, target: Any, step: int, *, is_lost: bool = False
) -> None:
    """Before the commit to a table, counted from 0; `is_lost`: behind it."""
    original, steps = target._add, iter(range(9))

    def dying(*given: Any) -> int:
        at = next(steps)
        if at == step and not is_lost:
            raise Died
        version: int = original(*given)
        if at == step:
            raise Died
        return version

    monkeypatch.setattr(target, "_add", dying)


def each_crash() -> Iterator[tuple[str, int, str]]:
    for kind in TABLES:
        for step in range(4):
            for change in CHANGES:
                yield kind, step, change


@pytest.mark.parametrize(("kind", "step", "change"), [*each_crash()])
def test_every_offset_is_there_once(
    kind: str, step: int, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived(kind, tmp_path, MadeUp({0: 60}))
    with opened(kind, tmp_path) as target:
        dies_behind(monkeypatch, target, min(step, 2), is_lost=step == 3)
        with pytest.raises(Died):
            run(target, MadeUp({0: 161}))
    span_ms, wishes = CHANGES[change]
    later(monkeypatch, span_ms)

    archived(kind, tmp_path, MadeUp({0: 161}), wishes)

    once(kind, tmp_path, 161)
    archived(kind, tmp_path, MadeUp({0: 300}), wishes)
    once(kind, tmp_path, 300)
    with opened(kind, tmp_path) as target:
        assert len(list((tmp_path / "_asides").glob("*"))) <= 1, "lists do not pile up"


def records_last(target: Any) -> Callable[[Commit], int]:
    """The order of commits in older versions, which died before the records."""

    def commit(commit: Commit) -> int:
        take_names(target.root, commit)
        for kind in (TableKind.QUARANTINE, TableKind.DEAD):
            files = [each for each in commit.files if each.kind is kind]
            table = target._ready(kind)
            target._add(kind, table, files, commit, target._round(table))
        raise Died

    return commit


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_compacted", [False, True], ids=["", "compacted"])
def test_an_archive_that_an_older_version_left_between_two_tables(
    kind: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_compacted: bool
) -> None:
    archived(kind, tmp_path, MadeUp({0: 60}))
    with opened(kind, tmp_path) as target:
        monkeypatch.setattr(target, "commit", records_last(target))
        with pytest.raises(Died):
            run(target, MadeUp({0: 161}))
        if is_compacted and kind == "delta":
            target.table(TableKind.QUARANTINE).optimize.compact()
        elif is_compacted:
            target.rewrite(TableKind.QUARANTINE, "topic == 't'", [("offset", "ascending")])
    span_ms, wishes = CHANGES[change]
    later(monkeypatch, span_ms)

    archived(kind, tmp_path, MadeUp({0: 300}), wishes)

    once(kind, tmp_path, 300)


@pytest.mark.parametrize("kind", TABLES)
def test_values_of_another_schema_between_two_tables(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived(kind, tmp_path, MadeUp({0: 60}))
    with opened(kind, tmp_path) as target:
        dies_behind(monkeypatch, target, 1)
        with pytest.raises(Died):
            run(target, MadeUp({0: 161}))
    for text in ('{"n": "string"}', '{"n": "string", "text": "string"}'):
        other = read_schema(text)
        with (
            pytest.raises(SchemaDiffers),
            opened(kind, tmp_path, value_schema=other) as target,
        ):
            run(target, MadeUp({0: 300}), WISHES._replace(value_schema=other))
        once(kind, tmp_path, 161)
    archived(kind, tmp_path, MadeUp({0: 300}))
    check(kind, tmp_path, {0: 300})


@pytest.mark.parametrize("kind", TABLES)
def test_a_second_archiver_between_two_tables(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which the lock does not keep apart: it finishes the first one's round, and goes on."""
    archived(kind, tmp_path, MadeUp({0: 60}))
    with opened(kind, tmp_path) as target:
        original = target._add

        def slow(table: TableKind, *given: Any) -> int:
            if table is TableKind.QUARANTINE:
                target._lock.release()
                monkeypatch.setattr(target, "_add", original)
                archived(kind, tmp_path, MadeUp({0: 250}))
                raise TableChanged("late")
            return int(original(table, *given))

        monkeypatch.setattr(target, "_add", slow)
        run(target, MadeUp({0: 161}))
    check(kind, tmp_path, {0: 250})


@pytest.mark.parametrize("kind", TABLES)
def test_a_list_that_is_gone_is_told(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(kind, tmp_path) as target:
        dies_behind(monkeypatch, target, 1)
        with pytest.raises(Died):
            run(target, MadeUp({0: 161}))
    (path,) = (tmp_path / "_asides").glob("*.json")
    content = path.read_text()
    for damaged in (None, "", "{}", content[:-9]):
        path.unlink() if damaged is None else path.write_text(damaged)
        with pytest.raises(DataLost, match=path.name):
            archived(kind, tmp_path, MadeUp({0: 161}))
    path.write_text(content)
    archived(kind, tmp_path, MadeUp({0: 161}))
    check(kind, tmp_path, {0: 161})


@pytest.mark.parametrize("kind", ["parquet", *TABLES])
def test_positions_never_fall(kind: str, tmp_path: Path) -> None:
    """A round that was planned before another one counted is refused."""
    archived(kind, tmp_path, MadeUp({0: 160}))
    stream = MadeUp({0: 0}).extents()[0].stream
    files = {path for path in tmp_path.rglob("*.parquet") if "_staging" not in path.parts}
    with opened(kind, tmp_path) as target:
        assert target.standing([stream]).begins == {stream.key: 160}
        target.standing = lambda _: TableStanding({stream.key: 40})
        with pytest.raises(TableChanged, match="is archived already, up to 160"):
            run(target, MadeUp({0: 120}))
    with opened(kind, tmp_path) as target:
        assert target.standing([stream]).begins == {stream.key: 160}
    assert files <= set(tmp_path.rglob("*.parquet"))
    archived(kind, tmp_path, MadeUp({0: 300}))
    check(kind, tmp_path, {0: 300})


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_that_is_ahead_stays_ahead(kind: str, tmp_path: Path) -> None:
    """Its position is the highest that it ever had, and a sweep takes nothing that it lists."""
    archived(kind, tmp_path, MadeUp({0: 160}))
    stream = MadeUp({0: 0}).extents()[0].stream
    with opened(kind, tmp_path) as target:
        target.standing([stream])
        table = target._ready(TableKind.QUARANTINE)
        target._add(TableKind.QUARANTINE, table, [], Commit((), {stream.key: (0, 40)}, 0, 0, 40), 5)
        table = target.table(TableKind.QUARANTINE)
        assert target._following(table, [stream]) == {stream.key: 160}
        target._known[TableKind.RECORDS] = {stream.key: 0}
        target._swept.clear()
        target._sweep([stream])
    check(kind, tmp_path, {0: 160})


@pytest.mark.parametrize("kind", TABLES)
def test_a_new_archive_begins_with_any_table(kind: str, tmp_path: Path) -> None:
    """No record is good: the records have a table all the same, which says how far it is."""
    wishes = Wishes(ahead_ms=-1000 * DAY_MS, oldest_ms=1001 * DAY_MS)
    with opened(kind, tmp_path, value_schema=None) as target:
        run(target, MadeUp({0: 90}), wishes)
        assert not run(target, MadeUp({0: 90}), wishes)
    once(kind, tmp_path, 90)
    assert table_of(kind, tmp_path, TableKind.RECORDS).num_rows == 0
