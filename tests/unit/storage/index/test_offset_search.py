"""An entry of an offset index is found without a proof of the index, and proved by itself."""

from pathlib import Path
from struct import pack

import pytest

from storage.index.offset_index import OffsetPosition
from storage.index.offset_search import OffsetSearch, indexed_batch
from storage.index.sparse_index import used_bytes
from storage.posix import real_env
from tests.support.records.logs import append, open_log

ENTRY = 8
FS = real_env().fs


def test_an_index_is_searched_from_both_sides(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(pack(">6i", 4, 100, 9, 256, 12, 512) + bytes(4 * ENTRY))

    index = OffsetSearch(FS, str(path), 1000)

    assert index.last_up_to(1003) is None
    assert index.last_up_to(1004) == (1004, 100)
    assert index.last_up_to(1011) == (1009, 256)
    assert index.last_up_to(10**6) == (1012, 512)
    assert index.first_at_position(0) == (1004, 100)
    assert index.first_at_position(101) == (1009, 256)
    assert index.first_at_position(512) == (1012, 512)
    assert index.first_at_position(513) is None
    assert OffsetSearch(FS, str(tmp_path / "none"), 0).last_up_to(5) is None


@pytest.mark.parametrize(
    ("data", "used"),
    [
        (b"", 0),
        (bytes(24), 0),
        (pack(">4i", 4, 256, 9, 512), 16),
        (pack(">4i", 4, 256, 9, 512) + bytes(24), 16),
        (pack(">2i", 4, 256) + bytes(3), 8),
        (pack(">2i", 4, 256) + b"\0\1", 8),
    ],
)
def test_entries_end_where_only_zeros_follow(data: bytes, used: int) -> None:
    assert used_bytes(data, ENTRY) == used


def test_an_entry_is_true_of_the_batch_that_ends_with_its_offset() -> None:
    log = open_log()
    for size in (2, 3, 1):
        append(log, *range(1000, 1000 + size))
    segment = log.snapshot.active
    file, limit = segment.file(), segment.size_bytes
    first = indexed_batch(file, OffsetPosition(1, 0), limit)
    assert first is not None
    second = first.end_position

    found = indexed_batch(file, OffsetPosition(4, second), limit)

    assert found is not None
    assert (found.position, found.base_offset, found.last_offset) == (second, 2, 4)
    for lie in ((2, second), (5, second), (4, second + 1), (4, -1), (4, limit), (4, limit + 9)):
        assert indexed_batch(file, OffsetPosition(*lie), limit) is None, lie
    assert indexed_batch(file, OffsetPosition(4, second), found.end_position - 1) is None
    assert indexed_batch(file, None, limit) is None
