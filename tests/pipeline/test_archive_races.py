"""Archivers that the lock does not keep apart, on a file system where it means nothing: the tables
themselves decide who was first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table import Table, Transaction

from pipeline.sinks.archive import tables as archive_tables
from pipeline.sinks.archive.compact_iceberg import compact_iceberg
from pipeline.sinks.archive.delta import DeltaArchive
from pipeline.sinks.archive.iceberg import IcebergArchive, NoCatalog
from pipeline.sinks.archive.values import TableChanged, TableKind
from tests.support.spark.archives import archived, check, opened
from tests.support.spark.made_up_records import MadeUp

COMMITS: dict[str, tuple[type, str]] = {
    "delta": (DeltaTable, "create_write_transaction"),
    "iceberg": (Transaction, "add_files"),
}
"""What a format's commit is, behind all of our own checks."""


class NoLock:
    """As a file system gives it that knows none."""

    def release(self) -> None:
        """Nothing is held."""


@pytest.fixture(autouse=True)
def no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_tables, "lock_archive", lambda _: NoLock())


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, commit: tuple[type, str], happens: Callable[[], object]
) -> None:
    """Once, just before a commit, something happens."""
    owner, name = commit
    original = getattr(owner, name)

    def late(self: Any, *given: Any, **named: Any) -> Any:
        monkeypatch.setattr(owner, name, original)
        happens()
        return original(self, *given, **named)

    monkeypatch.setattr(owner, name, late)


@pytest.mark.parametrize("kind", COMMITS)
def test_records_that_another_archived_meanwhile_are_not_doubled(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived(kind, tmp_path, MadeUp({0: 500}))
    meanwhile(monkeypatch, COMMITS[kind], lambda: archived(kind, tmp_path, MadeUp({0: 900})))

    with pytest.raises(TableChanged):
        archived(kind, tmp_path, MadeUp({0: 900}))

    check(kind, tmp_path, {0: 900})
    archived(kind, tmp_path, MadeUp({0: 1100}))
    check(kind, tmp_path, {0: 1100})


@pytest.mark.parametrize("kind", COMMITS)
def test_a_table_that_another_made_meanwhile(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    making = ({"delta": DeltaArchive, "iceberg": IcebergArchive}[kind], "_create")
    meanwhile(monkeypatch, making, lambda: archived(kind, tmp_path, MadeUp({0: 500})))

    with pytest.raises(TableChanged):
        archived(kind, tmp_path, MadeUp({0: 500}))

    archived(kind, tmp_path, MadeUp({0: 900}))
    check(kind, tmp_path, {0: 900})


@pytest.mark.parametrize(
    "moment",
    [
        (IcebergArchive, "exchange"),
        (Transaction, "update_snapshot"),
        (Transaction, "commit_transaction"),
    ],
)
def test_a_table_put_together_does_not_forget_what_was_archived_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: tuple[type, str]
) -> None:
    archived("iceberg", tmp_path, MadeUp({0: 1300}))
    meanwhile(monkeypatch, moment, lambda: archived("iceberg", tmp_path, MadeUp({0: 2000})))

    with opened("iceberg", tmp_path) as target, pytest.raises(TableChanged):
        list(compact_iceberg(target))

    assert not list(tmp_path.rglob("merged-*")), "what does not count goes"
    archived("iceberg", tmp_path, MadeUp({0: 2100}))
    check("iceberg", tmp_path, {0: 2100})


def test_a_commit_reads_nothing_that_older_ones_have_written(tmp_path: Path) -> None:
    """Or each would take longer than the one before."""
    archived("iceberg", tmp_path, MadeUp({0: 1300}))
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*-m*.avro")}
    assert kept
    for path in kept:
        path.unlink()

    archived("iceberg", tmp_path, MadeUp({0: 2000}))

    for path, content in kept.items():
        path.write_bytes(content)
    check("iceberg", tmp_path, {0: 2000})


@pytest.mark.parametrize("is_done", [False, True], ids=["lost", "done"])
def test_a_commit_whose_answer_is_lost_is_found_out_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_done: bool
) -> None:
    archived("iceberg", tmp_path, MadeUp({0: 500}))
    original = Table._do_commit

    def unsure(self: Table, *given: Any, **named: Any) -> None:
        if is_done:
            original(self, *given, **named)
        raise CommitStateUnknownException("502 Bad Gateway")

    monkeypatch.setattr(Table, "_do_commit", unsure)
    with pytest.raises(NoCatalog, match=r"may have failed: 502 Bad Gateway\. Run again"):
        archived("iceberg", tmp_path, MadeUp({0: 900}))
    monkeypatch.undo()

    archived("iceberg", tmp_path, MadeUp({0: 900}))
    check("iceberg", tmp_path, {0: 900})


def test_others_who_write_the_table_are_not_bound(tmp_path: Path) -> None:
    """That a commit is not tried again is not written down."""
    archived("iceberg", tmp_path, MadeUp({0: 1300}))
    with opened("iceberg", tmp_path) as target:
        for kind in TableKind:
            there = target.catalog.load_table(("horolog", str(kind)))
            assert not [name for name in there.properties if "retry" in name]
