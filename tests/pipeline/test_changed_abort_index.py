"""A changed bit in an index of aborted transactions: no reader takes aborted records for committed,
or leaves committed ones out, where the broker's checksum lies beside the index."""

from pathlib import Path

import pytest

from pipeline.errors import DamagedLog
from storage.files.layout import TXN_INDEX, TXN_SUM
from storage.index.txn_index import AbortedTxn, TxnIndex
from storage.posix import real_env
from tests.support.records.transactional_samples import write_transactions
from tests.support.spark.pipeline_logs import read_all

NAME = f"{0:020d}"
COMMITTED = [2, 3, 6, 7]
FIRST_OFFSET_BYTE = 17
"""The last byte of the first entry's first offset: without its lowest bit set it begins later."""


def committed(folder: Path) -> list[int]:
    asked = {"log_dirs": str(folder), "subscribe": "t", "offline": "true"}
    rows = read_all({**asked, "isolationLevel": "read_committed"}, ["offset"])
    return [row["offset"] for row in rows]


def synced(folder: Path, entries: int) -> Path:
    """The partition, its index as it is after a sync of so many entries; the index."""
    write_transactions(folder / "t-0")
    path = folder / "t-0" / f"{NAME}{TXN_INDEX}"
    whole = path.read_bytes()
    size = len(whole) // 2 * entries
    path.write_bytes(whole[:size])
    TxnIndex(real_env().fs, str(path), 0).sync()
    path.write_bytes(whole)
    return path


def change(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_changed_bit_is_told(tmp_path: Path) -> None:
    path = synced(tmp_path, 2)
    assert committed(tmp_path) == COMMITTED
    change(path, FIRST_OFFSET_BYTE)
    with pytest.raises(DamagedLog, match=rf"{NAME}\.txnindex.*checksum.*read_uncommitted"):
        committed(tmp_path)


def test_a_lost_index_is_told_by_what_is_left(tmp_path: Path) -> None:
    synced(tmp_path, 2).unlink()
    with pytest.raises(DamagedLog, match=rf"{NAME}\.txnindex.*checksum"):
        committed(tmp_path)


def test_without_a_checksum_the_index_is_believed_as_with_kafka(tmp_path: Path) -> None:
    path = synced(tmp_path, 2)
    path.with_name(f"{NAME}{TXN_SUM}").unlink()
    assert committed(tmp_path) == COMMITTED


@pytest.mark.parametrize("entries", [1, 2])
def test_entries_that_were_written_since_the_last_sync_are_read(
    tmp_path: Path, entries: int
) -> None:
    path = synced(tmp_path, entries)
    assert committed(tmp_path) == COMMITTED
    index = TxnIndex(real_env().fs, str(path), 0)
    index.append(AbortedTxn(7, 12, 13, 14))
    index.flush()
    assert committed(tmp_path) == COMMITTED


def test_records_of_a_damaged_index_are_read_uncommitted(tmp_path: Path) -> None:
    change(synced(tmp_path, 2), FIRST_OFFSET_BYTE)
    rows = read_all({"log_dirs": str(tmp_path), "subscribe": "t", "offline": "true"}, ["offset"])
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4, 6, 7, 9, 10, 12, 13]
