"""What others do to an archive's Iceberg tables, as one does to any: files put together anew,
snapshots expired, a table rolled back. The archive goes on from what is there."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table, Transaction

from pipeline.sinks.archive.iceberg import FOLLOWING, NAMESPACE, IcebergArchive
from pipeline.sinks.archive.values import TableChanged, TableKind
from tests.support.spark.archives import archived, check, opened
from tests.support.spark.made_up_records import MadeUp


def tables(archive: IcebergArchive) -> list[Table]:
    return [archive.catalog.load_table((NAMESPACE, str(kind))) for kind in TableKind]


def written_anew(root: Path) -> None:
    """As Spark's rewrite_data_files leaves it: the same rows, and a snapshot that is not ours."""
    with opened("iceberg", root) as archive:
        for table in tables(archive):
            table.overwrite(table.scan().to_arrow())


def expired(root: Path) -> None:
    """Every snapshot but the current one."""
    with opened("iceberg", root) as archive:
        for table in tables(archive):
            current = table.current_snapshot()
            assert current is not None
            old = [each for each in table.snapshots() if each.snapshot_id != current.snapshot_id]
            table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in old]).commit()


@pytest.mark.parametrize("is_written_anew", [False, True])
def test_expired_snapshots_do_not_make_it_begin_again(
    tmp_path: Path, *, is_written_anew: bool
) -> None:
    archived("iceberg", tmp_path, MadeUp({0: 1300, 1: 700}))
    if is_written_anew:
        written_anew(tmp_path)
    expired(tmp_path)

    assert not archived("iceberg", tmp_path, MadeUp({0: 1300, 1: 700}))
    archived("iceberg", tmp_path, MadeUp({0: 2100, 1: 900}))

    check("iceberg", tmp_path, {0: 2100, 1: 900})


def test_who_puts_files_together_does_not_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive that follows a topic goes on while others look after its tables."""
    archived("iceberg", tmp_path, MadeUp({0: 900}))
    original, left = Transaction.add_files, [3, 3]

    def late(self: Transaction, *given: Any, **named: Any) -> None:
        if left:
            left.pop()
            for kind in TableKind:
                table = load_catalog(NAMESPACE, **catalog).load_table((NAMESPACE, str(kind)))
                table.overwrite(table.scan().to_arrow())
        original(self, *given, **named)

    with opened("iceberg", tmp_path) as archive:
        catalog = archive.catalog.properties
    monkeypatch.setattr(Transaction, "add_files", late)
    archived("iceberg", tmp_path, MadeUp({0: 2000}))

    assert not left
    check("iceberg", tmp_path, {0: 2000})


def test_an_archive_that_nothing_speaks_of_is_not_begun_again(tmp_path: Path) -> None:
    archived("iceberg", tmp_path, MadeUp({0: 900}))
    written_anew(tmp_path)
    expired(tmp_path)
    with opened("iceberg", tmp_path) as archive:
        for table in tables(archive):
            with table.transaction() as change:
                change.remove_properties(FOLLOWING)

    with pytest.raises(TableChanged, match="nothing says up to where it was archived"):
        archived("iceberg", tmp_path, MadeUp({0: 1300}))

    check("iceberg", tmp_path, {0: 900})


def test_a_table_that_was_rolled_back_is_archived_from_there(tmp_path: Path) -> None:
    archived("iceberg", tmp_path, MadeUp({0: 900}))
    with opened("iceberg", tmp_path) as archive:
        before = [table.current_snapshot() for table in tables(archive)]
    archived("iceberg", tmp_path, MadeUp({0: 2000}))
    with opened("iceberg", tmp_path) as archive:
        for table, snapshot in zip(tables(archive), before, strict=True):
            assert snapshot is not None
            table.manage_snapshots().rollback_to_snapshot(snapshot.snapshot_id).commit()

    archived("iceberg", tmp_path, MadeUp({0: 2000}))

    check("iceberg", tmp_path, {0: 2000})
