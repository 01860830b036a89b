"""Loads on a disk that fails for a moment: the next one gives what is committed, nothing else."""

import pytest

from protocol.records.builder import build_batch
from storage.errors import DiskError, StorageError
from storage.files.layout import LOG
from tests.support.fleet.segment_history import History
from tests.support.fleet.segment_world import Node, check

CALLS = 40
"""More calls of each kind than a load makes."""


def append(history: History, node: Node, batches: int) -> None:
    assert node.log is not None
    for _ in range(batches):
        value = str(history.next_value).rjust(40).encode()
        history.next_value += 1
        batch = build_batch([(history.clock.now_ms(), None, value)])
        node.log.log.append(memoryview(batch), acks_all=True, leader_epoch=history.rows.epoch)


async def left_behind(*, is_copied: bool) -> tuple[History, Node]:
    """A node whose log ends with what nobody committed, where another one has gone on since."""
    history = History(0, transacts=False)
    rows, (first, second) = history.rows, history.nodes[:2]
    await first.lead(rows)
    assert first.log is not None
    append(history, first, 3)
    rows.commit(first.log)
    first.log.log.roll()
    first.log.log.mark_durable(first.log.log.sync())
    if is_copied:
        assert first.tiered.copy_next(lambda _: None)
        rows.name(first.tiered)
    append(history, first, 1)
    rows.commit(first.log)
    append(history, first, 2)  # offsets 4 and 5
    first.log.log.sync()
    first.logs.checkpoint()
    await second.lead(rows)
    assert second.log is not None
    append(history, second, 4)
    rows.commit(second.log)
    return history, first


@pytest.mark.parametrize("is_copied", [True, False])
@pytest.mark.parametrize("operation", ["write", "sync", "truncate", "rename", "remove"])
async def test_a_load_after_one_that_failed_in_the_middle_of_a_cut(
    operation: str, is_copied: bool
) -> None:
    failures = 0
    for skip in range(CALLS):
        history, node = await left_behind(is_copied=is_copied)
        node.fs.inject(operation, path="/data", skip=skip, error="enospc")
        try:
            await node.lead(history.rows)
        except StorageError:
            failures += 1
            await node.lead(history.rows)
        assert node.log is not None
        check(history.rows, node.log, is_compacted=False)
    assert 0 < failures < CALLS


async def test_a_start_after_a_cut_that_failed_recovers_the_log() -> None:
    history, node = await left_behind(is_copied=True)
    node.fs.inject("write", path="recovery-point", error="enospc")
    with pytest.raises(DiskError):
        await node.lead(history.rows)
    assert not node.logs.close(), "it was left clean: the next start would trust it"
    node.start()
    await node.lead(history.rows)
    assert node.log is not None
    check(history.rows, node.log, is_compacted=False)


async def test_what_is_left_of_an_adoption_that_failed_is_no_part_of_the_next_one() -> None:
    """The directory could not be removed either."""
    history, _ = await left_behind(is_copied=True)
    other = history.nodes[2]
    other.fs.make_dir("/data/t-0")
    left = other.fs.open("/data/t-0/00000000000000000004.log", create=True)
    left.write_at(0, bytes(1000))
    await other.lead(history.rows)
    assert other.log is not None
    check(history.rows, other.log, is_compacted=False)


async def test_a_cut_on_a_full_disk_has_the_room_of_the_ballast() -> None:
    history, node = await left_behind(is_copied=True)
    node.logs.ballast.keep(1 << 20)
    node.fs.inject("write", path="recovery-point", error="enospc")
    await node.lead(history.rows)
    assert node.log is not None
    check(history.rows, node.log, is_compacted=False)
    assert not node.logs.ballast.size_bytes


@pytest.mark.parametrize("is_copied", [True, False])
async def test_a_log_whose_fsync_has_failed_is_made_again_from_what_is_committed(
    is_copied: bool,
) -> None:
    history, node = await left_behind(is_copied=is_copied)
    rows = history.rows
    await node.lead(rows)
    failed = node.log
    assert failed is not None
    append(history, node, 1)
    node.fs.inject("sync", path=".log")
    with pytest.raises(DiskError):
        failed.log.sync()
    assert not failed.takes_records
    await node.lead(rows)
    assert node.log.takes_records
    append(history, node, 1)
    rows.commit(node.log)
    check(rows, node.log, is_compacted=False)


@pytest.mark.parametrize(("error", "ends"), [("eio", True), ("enospc", False)])
async def test_a_device_that_refuses_a_write_ends_the_log_and_want_of_room_does_not(
    error: str, ends: bool
) -> None:
    history, node = await left_behind(is_copied=False)
    await node.lead(history.rows)
    assert node.log is not None
    node.fs.inject("write", path=".log", error=error)
    with pytest.raises(DiskError):
        append(history, node, 1)
    assert node.log.takes_records != ends
    await node.lead(history.rows)
    append(history, node, 1)
    history.rows.commit(node.log)
    check(history.rows, node.log, is_compacted=False)


@pytest.mark.parametrize("is_copied", [True, False])
async def test_a_log_that_is_damaged_here_is_made_again_from_what_is_committed(
    is_copied: bool,
) -> None:
    history, node = await left_behind(is_copied=is_copied)
    rows = history.rows
    await node.lead(rows)
    assert node.log is not None
    while node.log.log.snapshot.active.size_bytes < 300:
        append(history, node, 1)
    rows.commit(node.log)
    node.log.log.sync()
    node.log.log.vouch()
    file = node.fs.open(node.log.log.snapshot.active.path_of(LOG))
    file.write_at(100, b"\xff")
    file.sync()
    node.fs = node.fs.after_kill()
    node.start()
    assert node.logs.logs["t", 0].corruption is not None
    await node.lead(rows)
    check(rows, node.log, is_compacted=False)
