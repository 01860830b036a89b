"""Back-ups of a directory in use: what they have, what they send again, and what they refuse."""

from collections.abc import Iterator

import pytest

from storage.backup.partition_backup import REST_SECONDS
from storage.backup.run import BackupRefused
from storage.backup.still_log import TieredElsewhere
from storage.directory.log_manager import LogManager
from storage.env import Buffer
from storage.errors import StorageError
from storage.files.layout import LOG, META_PROPERTIES_FILE, RESTORING_FILE, SYNCED_MARK
from storage.tier.card import ForeignTier, claim
from storage.tier.cluster_picture import USERS_FILE, Content, PictureWriter
from storage.tier.manifests import local_state
from storage.tier.manifests.local_state import LocalState
from storage.tier.manifests.reading import read_newest
from storage.tier.names import PartitionKeys
from storage.tier.port import ObjectFacts
from storage.tier.single_writer import WriterReplaced
from storage.tier.tiered_log import TierMismatch
from storage.verify.directory import survey, verify_partition
from tests.support.backup.backup_world import (
    CLUSTER_ID,
    DATA,
    HOUR_MS,
    KEYED,
    OFFSETS,
    PLAIN,
    TOPICS,
    TRANSACTIONAL,
    BackupWorld,
    arrivals_of,
    content_of,
    restored,
)
from tests.support.tier.memory_store import MemoryStore


@pytest.fixture
def world() -> BackupWorld:
    made = BackupWorld()
    made.fill_all(12)
    made.sync()
    return made


@pytest.fixture
def store(world: BackupWorld) -> MemoryStore:
    return MemoryStore(world.clock.now_ms)


def test_a_restore_has_what_the_directory_had(world: BackupWorld, store: MemoryStore) -> None:
    before = world.content()
    done = world.back_up(store)
    assert all(each.sent.segments and not each.damage for each in done.partitions)
    manager, result = restored(world, store)
    assert content_of(manager) == before
    assert len(before[PLAIN, 0].records) == 12
    assert before[TRANSACTIONAL, 0].aborted
    assert manager.cluster_id == CLUSTER_ID
    assert result.picture.content.files[USERS_FILE] == '{"users": []}\n'
    assert result.picture.began_ms == done.picture.began_ms


def test_arrival_times_come_with_it(world: BackupWorld, store: MemoryStore) -> None:
    """Those of the zone that a running broker has in memory alone are estimates, and say so."""
    world.back_up(store)
    manager, _ = restored(world, store)
    for name, log in world.manager.logs.items():
        known, found = arrivals_of(log), arrivals_of(manager.logs[name])
        assert found.keys() == known.keys()
        exact = {at: each for at, each in found.items() if not each.is_estimated}
        assert all(known[at] == each for at, each in exact.items())
        assert len(exact) >= len(known) // 2
    world.manager.close()
    world.start()
    world.fill_all(1)
    world.manager.close()
    world.start()
    world.back_up(store)
    manager, _ = restored(world, store)
    for name in ((PLAIN, 0), (PLAIN, 1), (KEYED, 0), (OFFSETS, 0)):
        assert arrivals_of(manager.logs[name]) == arrivals_of(world.manager.logs[name])


def test_a_second_run_sends_what_is_new_alone(world: BackupWorld, store: MemoryStore) -> None:
    world.back_up(store)
    again = world.back_up(store)
    assert [each.sent.segments for each in again.partitions] == [0] * 5
    world.fill(8)
    world.sync()
    third = {each.keys[::2]: each.sent for each in world.back_up(store).partitions}
    assert third[PLAIN, 0].segments == 3  # the end that was there, grown, and what follows
    assert sum(each.segments for each in third.values()) == third[PLAIN, 0].segments
    assert content_of(restored(world, store)[0]) == world.content()


def test_records_of_idle_logs_are_not_read_again(world: BackupWorld, store: MemoryStore) -> None:
    world.compact()
    world.clock.advance(HOUR_MS)
    world.back_up(store)
    read: set[str] = set()
    world.on_read = lambda path: read.add(path) if path.endswith(LOG) else None
    world.clock.advance(HOUR_MS)
    world.back_up(store)
    assert not read
    world.fill(1, PLAIN, 1)
    world.sync()
    world.retain_from(world.log(PLAIN).snapshot.segments[1].base_offset)
    world.back_up(store)
    assert {path.split("/")[2] for path in read} == {"plain-0", "plain-1"}
    read.clear()
    world.clock.advance(HOUR_MS)
    world.fill(9, KEYED)
    world.compact()
    world.back_up(store)
    assert {path.split("/")[2] for path in read} >= {"keyed-0"}
    assert content_of(restored(world, store)[0]) == world.content()


def test_what_is_not_on_the_disk_is_not_in_it(world: BackupWorld, store: MemoryStore) -> None:
    before = world.content()
    world.fill(3)
    world.back_up(store)
    assert content_of(restored(world, store)[0]) == before


def test_an_open_transaction_waits_for_its_end(world: BackupWorld, store: MemoryStore) -> None:
    world.transaction(9, is_committed=None)
    world.fill(5, TRANSACTIONAL)
    world.sync()
    before = world.content()
    world.back_up(store)
    manager, _ = restored(world, store)
    assert content_of(manager) == before
    assert manager.logs[TRANSACTIONAL, 0].snapshot.log_end_offset < 30
    world.transaction(1, is_committed=True)
    world.sync()
    world.back_up(store)
    after = content_of(restored(world, store)[0])
    assert after == world.content()
    assert after[TRANSACTIONAL, 0].end_offset == before[TRANSACTIONAL, 0].end_offset + 9 + 5 + 2


@pytest.mark.parametrize("topic", [KEYED, OFFSETS])
def test_compaction_between_two_runs(world: BackupWorld, store: MemoryStore, topic: str) -> None:
    world.back_up(store)
    for _ in range(3):
        world.fill(20, topic)
        world.compact(topic)
        world.clock.advance(HOUR_MS)
        world.fill(2, topic)
        world.sync()
        world.back_up(store)
        assert content_of(restored(world, store)[0]) == world.content()
        assert not any(each.sent.segments for each in world.back_up(store).partitions)
    assert len(world.content()[topic, 0].records) < 20


def test_retention_between_two_runs(world: BackupWorld, store: MemoryStore) -> None:
    world.back_up(store)
    world.fill(8)
    world.sync()
    world.retain_from(11)
    world.back_up(store)
    assert content_of(restored(world, store)[0]) == world.content()
    assert world.content()[PLAIN, 0].start_offset == 11


def test_a_log_of_which_nothing_is_left_keeps_its_offsets(
    world: BackupWorld, store: MemoryStore
) -> None:
    world.log(PLAIN).roll()
    world.sync()
    world.retain_from(12)
    world.back_up(store)
    manager, _ = restored(world, store)
    assert content_of(manager) == world.content()
    assert manager.logs[PLAIN, 0].snapshot.log_end_offset == 12


def test_restarts_and_kills_between_runs(world: BackupWorld, store: MemoryStore) -> None:
    world.back_up(store)
    world.manager.close()
    world.back_up(store)
    world.start()
    assert content_of(restored(world, store)[0]) == world.content()
    world.fill_all(3)
    world.sync()
    world.manager.release()
    world.fs = world.fs.after_kill()
    world.back_up(store)
    found = content_of(restored(world, store)[0])
    assert found[PLAIN, 0].end_offset == 15


class BusyStore(MemoryStore):
    """Something happens while it takes the first objects."""

    def __init__(self, world: BackupWorld, happening: str) -> None:
        super().__init__(world.clock.now_ms)
        self._world = world
        self._happening = happening
        self.happened = 0

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        if key.endswith(LOG) and self.happened < 3:
            self.happened += 1
            world = self._world
            if self._happening == "retention":
                world.fill(3)
                world.sync()
                start = world.log(PLAIN).snapshot.segments[1].base_offset
                world.retain_from(start)
            elif self._happening == "compaction":
                world.fill(6, KEYED)
                world.compact()
            elif self._happening == "deletion":
                del world.topics[KEYED]
                self._happening = ""
                world.write_top()
                world.manager.delete_log(KEYED, 0)
                while world.manager.remove_deleted(hurry=True):
                    pass
            else:
                world.fill_all(2)
        super().put_file(key, parts, size_bytes)


@pytest.mark.parametrize("happening", ["appends", "retention", "compaction", "deletion"])
def test_a_broker_at_work_meanwhile(world: BackupWorld, happening: str) -> None:
    world.fill(30, KEYED)
    world.compact()
    store = BusyStore(world, happening)
    done = world.back_up(store)
    assert not [each.damage for each in done.partitions if each.damage]
    assert store.happened >= 1
    world.sync()
    manager, _ = restored(world, store)
    during = content_of(manager)
    if happening == "compaction":  # no file is of one segment and another of the next
        manager.close()
        check_whole(manager)
    for name, found in during.items():
        now = world.content()[name]
        start = max(found.start_offset, now.start_offset)
        if happening != "compaction" or name[0] != KEYED:
            assert [row for row in found.records if row[0] >= start] == [
                row for row in now.records if start <= row[0] < found.end_offset
            ]
    world.back_up(store)
    assert content_of(restored(world, store)[0]) == world.content()


class ListedStore(MemoryStore):
    """Its broker compacts when manifests are listed, once: names were looked at before."""

    world: BackupWorld | None = None

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
        world, is_his = self.world, f"/{KEYED}/" in prefix
        if world is not None and is_his:
            self.world = None
            world.compact()
        return super().list(prefix, after=after)


def test_files_that_are_replaced_after_they_were_looked_at(world: BackupWorld) -> None:
    store = ListedStore(world.clock.now_ms)
    world.fill(60, KEYED)
    world.sync()
    store.world = world
    world.back_up(store)
    assert store.world is None
    manager, _ = restored(world, store)
    assert content_of(manager) == world.content()
    manager.close()
    check_whole(manager)


def test_files_that_are_replaced_after_the_mark_was_read(world: BackupWorld) -> None:
    """A record may have gone for one that is behind the mark: the mark is read again."""
    store = MemoryStore(world.clock.now_ms)
    world.compact()
    world.fill(3, KEYED)
    world.sync()
    reads = 0

    def on_read(path: str) -> None:
        nonlocal reads
        reads += path.endswith(f"{KEYED}-0/{SYNCED_MARK}")
        if reads == 2:  # the first one was at the moment at which all logs are looked at
            reads += 1
            world.fill(40, KEYED)
            world.compact()

    pauses: list[float] = []
    world.on_read = on_read
    world.back_up(store, pause=pauses.append)
    assert REST_SECONDS in pauses, "it did not look again"
    found = content_of(restored(world, store)[0])[KEYED, 0]
    assert found == world.content()[KEYED, 0]


def check_whole(manager: LogManager) -> None:
    """Every index entry, zone row and abort list agrees with the records."""
    fs = manager.logs[KEYED, 0].files.fs
    whole = survey(fs, manager.log_dir)
    for path in whole.partitions:
        report = verify_partition(fs, path, whole, lambda _: None)
        assert report.verdict == "sound", report


def test_places_that_are_refused(world: BackupWorld, store: MemoryStore) -> None:
    claim(store, "other")
    with pytest.raises(ForeignTier, match="belongs to the cluster other, not to cluster"):
        world.back_up(store)
    tier = MemoryStore(world.clock.now_ms)
    claim(tier, CLUSTER_ID)
    PictureWriter(tier, world.clock).write_if_changed(Content(CLUSTER_ID, 1, world.files()))
    with pytest.raises(BackupRefused, match="a broker's tier"):
        world.back_up(tier)


def test_directories_that_are_refused(world: BackupWorld, store: MemoryStore) -> None:
    world.fs.write_atomically(f"{DATA}/{RESTORING_FILE}", b"")
    with pytest.raises(BackupRefused, match="restore into it"):
        world.back_up(store)
    world.fs.remove(f"{DATA}/{RESTORING_FILE}")
    world.fs.remove(f"{DATA}/horolog-topics.json")
    with pytest.raises(BackupRefused, match="has not started on it yet"):
        world.back_up(store)
    world.write_top()
    world.fs.remove(f"{DATA}/{META_PROPERTIES_FILE}")
    with pytest.raises(BackupRefused, match="no data directory"):
        world.back_up(store)
    assert not store.objects


def test_a_directory_that_is_older_than_its_back_up(world: BackupWorld, store: MemoryStore) -> None:
    old = world.fs.after_kill()
    world.fill(9)
    world.sync()
    world.back_up(store)
    kept = content_of(restored(world, store)[0])
    world.fs = old
    with pytest.raises(TierMismatch, match="old copy"):
        world.back_up(store)
    assert content_of(restored(world, store)[0]) == kept


def test_two_at_once_do_not_mix(world: BackupWorld, store: MemoryStore) -> None:
    class Second(MemoryStore):
        """Another back-up comes to its end in the middle of the first one."""

        def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
            super().put_file(key, parts, size_bytes)
            if "seen" not in vars(self):
                self.seen = True
                world.back_up(self)

    both = Second(world.clock.now_ms)
    with pytest.raises(WriterReplaced):
        world.back_up(both)
    assert content_of(restored(world, both)[0]) == world.content()
    world.back_up(both)
    world.sweep(both)
    assert content_of(restored(world, both)[0]) == world.content()


def test_a_damaged_log_keeps_its_copy_from_before(world: BackupWorld, store: MemoryStore) -> None:
    world.back_up(store)
    before = world.content()
    world.fill_all(2)
    world.sync()
    segment = world.log(PLAIN).snapshot.active
    file = world.fs.open(segment.path_of(LOG))
    file.write_at(70, b"\xff")
    done = world.back_up(store)
    damaged = [each for each in done.partitions if each.damage]
    assert [(each.keys.topic, each.keys.partition) for each in damaged] == [(PLAIN, 0)]
    found = content_of(restored(world, store)[0])
    assert found[PLAIN, 0] == before[PLAIN, 0]
    assert found[PLAIN, 1].end_offset == before[PLAIN, 1].end_offset + 2


def test_errors_name_what_they_are_of(world: BackupWorld, store: MemoryStore) -> None:
    world.fs.write_atomically(f"{DATA}/recovery-point-offset-checkpoint", b"0\nno\n")
    with pytest.raises(StorageError, match="recovery-point"):
        world.back_up(store)


def test_a_log_that_a_tier_has_a_part_of_is_refused(world: BackupWorld, store: MemoryStore) -> None:
    """As long as the directory has all of it, it is backed up like any other."""
    tiered = MemoryStore(world.clock.now_ms)
    world.back_up(tiered)
    keys = PartitionKeys(PLAIN, TOPICS[PLAIN].topic_id, 0)
    manifest = read_newest(tiered, keys)
    assert manifest is not None
    local_state.save(world.fs, f"{DATA}/{PLAIN}-0", LocalState(manifest))
    world.back_up(store)
    assert content_of(restored(world, store)[0]) == world.content()
    second = manifest.segments[1].base_offset
    local_state.save(world.fs, f"{DATA}/{PLAIN}-0", LocalState(manifest, second))
    with pytest.raises(TieredElsewhere, match="in a tier's store alone"):
        world.back_up(store)
