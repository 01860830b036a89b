"""A log made under the name of an older one: what may still be there, and who writes late."""

from collections.abc import Callable
from uuid import UUID

import pytest

from storage.directory.log_manager import LogManager
from storage.errors import DiskError, StorageError
from storage.files.partition_files import FilePool, PartitionFiles
from storage.files.synced_mark import load
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import append, make_durable
from tests.unit.storage.directory.test_log_manager import (
    CONFIG,
    LOG_DIR,
    TOPIC_ID,
    disk_of,
    started,
    with_log,
)

NEW_ID = UUID(int=43)
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "horolog-log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "horolog-delete-horizon-checkpoint",
)


def noted(fs: SimFileSystem, topic: str = "t") -> dict[str, list[str]]:
    """What the checkpoints say of a topic."""
    return {
        name: rows
        for name in CHECKPOINTS
        if fs.exists(f"{LOG_DIR}/{name}")
        and (
            rows := [
                r
                for r in fs.read_text(f"{LOG_DIR}/{name}").splitlines()[2:]
                if r.startswith(f"{topic} ")
            ]
        )
    }


def with_old_log() -> LogManager:
    """A log of which every checkpoint says something."""
    manager = with_log(sim_env())
    log = manager.logs["t", 0]
    make_durable(log)
    log.delete_records(7)
    manager.checkpoint()
    manager.cleaned(log, 5, 10**12)
    assert set(noted(fs_of(manager))) == set(CHECKPOINTS)
    return manager


def fs_of(manager: LogManager) -> SimFileSystem:
    return disk_of(manager._env)


def test_the_mark_of_what_was_synced_is_the_new_logs() -> None:
    manager = with_old_log()
    manager.delete_log("t", 0)
    log = manager.create_log("t", 0, NEW_ID, CONFIG)
    append(log, 0)
    make_durable(log)
    assert load(PartitionFiles(fs_of(manager), FilePool(fs_of(manager)), f"{LOG_DIR}/t-0")) == 1


def test_no_checkpoint_knows_the_name_when_the_log_is_made() -> None:
    manager = with_old_log()
    manager.delete_log("t", 0)
    manager.create_log("t", 0, NEW_ID, CONFIG)
    for seed in range(10):
        assert noted(fs_of(manager).after_crash(seed)) == {}


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("operation", ["write", "sync", "rename", "sync directory"])
def test_a_log_is_not_made_while_a_checkpoint_knows_its_name(name: str, operation: str) -> None:
    manager = with_old_log()
    manager.delete_log("t", 0)
    path = "" if operation == "sync directory" else name
    fs_of(manager).inject(operation, path=path, times=1)
    with pytest.raises(DiskError):
        manager.create_log("t", 0, NEW_ID, CONFIG)
    assert not manager.logs
    assert not fs_of(manager).exists(f"{LOG_DIR}/t-0")
    manager.create_log("t", 0, NEW_ID, CONFIG)
    assert noted(fs_of(manager)) == {}


def test_names_that_were_never_there_cost_no_write() -> None:
    manager = with_old_log()
    fs = fs_of(manager)
    before = {name: fs.read_text(f"{LOG_DIR}/{name}") for name in CHECKPOINTS}
    fs.inject("write", path="checkpoint", times=100)
    manager.create_log("other", 0, NEW_ID, CONFIG)
    assert before == {name: fs.read_text(f"{LOG_DIR}/{name}") for name in CHECKPOINTS}


def test_a_checkpoint_under_way_does_not_bring_the_old_log_back() -> None:
    """The timer's thread has begun; deletion and creation happen before its turn to write comes."""
    manager = with_old_log()
    fs = fs_of(manager)

    def meanwhile(_: int) -> None:
        fs.on_call = None
        manager.delete_log("t", 0)

    fs.on_call = meanwhile
    manager.checkpoint()
    manager.create_log("t", 0, NEW_ID, CONFIG)
    assert not any(" 7" in row or " 20" in row for rows in noted(fs).values() for row in rows)


def test_a_run_of_the_cleaner_that_ends_after_the_deletion_says_nothing() -> None:
    manager = with_old_log()
    old = manager.logs["t", 0]
    manager.delete_log("t", 0)
    manager.create_log("t", 0, NEW_ID, CONFIG)
    manager.cleaned(old, 5, 10**12)
    assert noted(fs_of(manager)) == {}


def failing_rename(fs: SimFileSystem) -> None:
    fs.inject("rename", path="/t-0", times=1)


def failing_sync(fs: SimFileSystem) -> None:
    fs.inject("sync directory", path=LOG_DIR, times=1)


@pytest.mark.parametrize("fails", [failing_rename, failing_sync])
def test_a_directory_that_could_not_be_deleted_goes_with_the_next_log_of_its_name(
    fails: Callable[[SimFileSystem], None],
) -> None:
    manager = with_old_log()
    fs = fs_of(manager)
    fails(fs)
    with pytest.raises(DiskError):
        manager.delete_log("t", 0)
    log = manager.create_log("t", 0, NEW_ID, CONFIG)
    append(log, 1)
    assert (log.topic_id, log.snapshot.log_end_offset) == (NEW_ID, 1)
    again = started(sim_env(fs=fs.after_crash(3)))
    assert again.logs["t", 0].topic_id == NEW_ID
    assert again.logs["t", 0].snapshot.log_start_offset == 0
    assert noted(fs) == {}


def test_while_it_cannot_be_deleted_no_log_is_made() -> None:
    manager = with_old_log()
    fs_of(manager).inject("rename", path="/t-0", times=2)
    for attempt in (lambda: manager.delete_log("t", 0), lambda: _make(manager)):
        with pytest.raises(DiskError):
            attempt()
    _make(manager)
    assert manager.logs["t", 0].topic_id == NEW_ID


def test_a_log_in_use_is_never_replaced() -> None:
    manager = with_old_log()
    with pytest.raises(StorageError, match="in use"):
        _make(manager)
    assert manager.logs["t", 0].snapshot.log_end_offset == 20
    assert manager.create_log("t", 0, TOPIC_ID, CONFIG) is manager.logs["t", 0]


def _make(manager: LogManager) -> None:
    manager.create_log("t", 0, NEW_ID, CONFIG)
