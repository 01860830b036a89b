"""A data directory as a whole: lock, identity, marks, checkpoints, Kafka's directories (9.1)."""

from uuid import UUID

import pytest

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.errors import DirectoryLocked, DiskError, NewerFormat, StorageError
from storage.files.meta_properties import read_meta_properties, read_partition_metadata
from storage.log.log import Log
from storage.producers.producer_state import PRODUCER_BYTES
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock, sim_env
from tests.support.records.logs import (
    NO_BOUNDS,
    append,
    append_bytes,
    make_durable,
    offsets_of,
    records_of,
)

LOG_DIR = "/data"
TOPIC_ID = UUID(int=42)
CONFIG = TopicConfig(**NO_BOUNDS, file_delete_delay_ms=1000, segment_bytes=500)


def started(env: Env, *, load: bool = True) -> LogManager:
    manager = LogManager(env, LOG_DIR, lambda topic: CONFIG)
    manager.open_directory("", 1)
    if load:
        manager.load()
    return manager


def disk_of(env: Env) -> SimFileSystem:
    assert isinstance(env.fs, SimFileSystem)
    return env.fs


def with_log(env: Env, records: int = 20) -> LogManager:
    manager = started(env)
    log = manager.create_log("t", 0, TOPIC_ID, CONFIG)
    for at in range(records):
        append(log, 1000 + at)
    return manager


def text(env: Env, name: str) -> str:
    return env.fs.read_text(f"{LOG_DIR}/{name}")


def test_a_new_directory_gets_its_identity() -> None:
    env = sim_env()
    manager = started(env)
    meta = read_meta_properties(env.fs, f"{LOG_DIR}/meta.properties")
    assert meta is not None
    assert meta.cluster_id == manager.cluster_id != ""
    assert (meta.node_id, meta.directory_id) == (1, manager.directory_id)
    assert manager.close()
    assert started(env).cluster_id == manager.cluster_id


def test_only_one_may_hold_it() -> None:
    env = sim_env()
    manager = started(env)
    with pytest.raises(DirectoryLocked):
        started(env)
    manager.close()
    started(env)


def test_strangers_and_newer_formats_are_refused_and_the_lock_is_let_go() -> None:
    env = sim_env()
    started(env).close()
    other = LogManager(env, LOG_DIR, lambda topic: CONFIG)
    with pytest.raises(StorageError, match="cluster"):
        other.open_directory("another", 1)
    with pytest.raises(StorageError, match="node 1"):
        other.open_directory("", 2)
    env.fs.write_atomically(f"{LOG_DIR}/meta.properties", b"version=2\nnode.id=1\n")
    with pytest.raises(NewerFormat):
        other.open_directory("", 1)
    env.fs.write_atomically(f"{LOG_DIR}/meta.properties", b"version=1\nnode.id=1\n")
    other.open_directory("", 1)


def test_a_clean_stop_needs_no_recovery_and_a_kill_does() -> None:
    env = sim_env()
    manager = with_log(env)
    assert manager.close()
    assert env.fs.exists(f"{LOG_DIR}/.kafka_cleanshutdown")
    again = started(env)
    assert not env.fs.exists(f"{LOG_DIR}/.kafka_cleanshutdown")
    assert (again.recovered_logs, again.rebuilt_indexes) == (0, 0)
    assert offsets_of(records_of(again.logs["t", 0])) == list(range(20))
    killed = sim_env(fs=disk_of(env).after_kill())
    recovered = started(killed)
    assert recovered.recovered_logs == 1
    assert offsets_of(records_of(recovered.logs["t", 0])) == list(range(20))


def test_what_was_recovered_is_not_scanned_again_after_the_next_kill() -> None:
    env = sim_env()
    with_log(env, records=20)
    env = Env(env.clock, disk_of(env).after_kill(), env.rng)
    again = started(env)
    assert again.recovered_logs == 1
    assert "t 0 20" in text(env, "recovery-point-offset-checkpoint")


def test_the_clean_mark_is_gone_before_anything_is_loaded() -> None:
    env = sim_env()
    with_log(env).close()
    env.fs.write_atomically(f"{LOG_DIR}/t-0/partition.metadata", b"version: 9\n")
    with pytest.raises(NewerFormat):
        started(env)
    assert not env.fs.exists(f"{LOG_DIR}/.kafka_cleanshutdown")


def test_checkpoints_are_in_kafka_s_format_and_say_the_truth() -> None:
    env = sim_env()
    manager = with_log(env)
    log = manager.logs["t", 0]
    make_durable(log)
    log.delete_records(3)
    append(log, 5, acks_all=True)
    manager.checkpoint()
    assert text(env, "recovery-point-offset-checkpoint").startswith("0\n2\nt 0 20\n#crc32c 0 ")
    assert text(env, "log-start-offset-checkpoint").startswith("0\n2\nt 0 3\n#crc32c 0 ")
    assert text(env, "replication-offset-checkpoint").startswith("0\n2\nt 0 20\n#crc32c 0 ")


def test_a_start_offset_is_durable_when_it_is_answered() -> None:
    env = sim_env()
    manager = with_log(env)
    log = manager.logs["t", 0]
    make_durable(log)
    log.delete_records(7)
    for seed in range(10):
        survivor = started(sim_env(fs=disk_of(env).after_crash(seed)))
        assert survivor.logs["t", 0].snapshot.log_start_offset == 7


def test_start_offsets_at_a_segment_s_base_are_not_listed() -> None:
    env = sim_env()
    with_log(env).close()
    assert text(env, "log-start-offset-checkpoint").startswith("0\n1\n#crc32c 0 ")


@pytest.mark.parametrize("digit", [b"2", b"4", b"9"])
def test_a_changed_digit_of_a_start_offset_neither_hides_records_nor_brings_deleted_ones_back(
    digit: bytes,
) -> None:
    env = sim_env()
    manager = with_log(env)
    make_durable(manager.logs["t", 0])
    manager.logs["t", 0].delete_records(3)
    manager.close()
    path = f"{LOG_DIR}/log-start-offset-checkpoint"
    changed = env.fs.read_bytes(path).replace(b"t 0 3\n", b"t 0 " + digit + b"\n")
    env.fs.write_atomically(path, changed)
    again = started(env)
    assert again.logs["t", 0].snapshot.log_start_offset == 3
    assert [path in each for each in again.damage] == [True]


def test_a_changed_digit_of_a_recovery_point_makes_recovery_look_at_everything() -> None:
    env = sim_env()
    manager = with_log(env)
    make_durable(manager.logs["t", 0])
    manager.checkpoint()
    env = sim_env(fs=disk_of(env).after_kill())
    path = f"{LOG_DIR}/recovery-point-offset-checkpoint"
    env.fs.write_atomically(path, env.fs.read_bytes(path).replace(b"t 0 20\n", b"t 0 30\n"))
    again = started(env)
    assert again.logs["t", 0].snapshot.log_end_offset == 20
    assert [path in each for each in again.damage] == [True]


@pytest.mark.parametrize("content", [b"1\n0\n", b"0\n5\nt 0 1\n", b"\xff\xfe", b"0\n1\nt 0 x\n"])
def test_a_damaged_checkpoint_is_absent_and_reported(content: bytes) -> None:
    env = sim_env()
    with_log(env).close()
    env.fs.remove(f"{LOG_DIR}/.kafka_cleanshutdown")
    env.fs.write_atomically(f"{LOG_DIR}/recovery-point-offset-checkpoint", content)
    manager = started(env)
    assert len(manager.damage) == 1
    assert offsets_of(records_of(manager.logs["t", 0])) == list(range(20))


def test_deleted_directories_are_out_of_the_way_at_once_and_go_later() -> None:
    clock = SimClock()
    env = Env(clock, SimFileSystem(clock=clock), SeededRng())
    manager = with_log(env)
    log = manager.logs["t", 0]
    data = log.read(0, 1 << 20, up_to=5, min_one_batch=True)
    manager.delete_log("t", 0)
    assert not manager.logs
    assert len(data.read()) == data.size_bytes
    names = {entry.name for entry in env.fs.list_dir(LOG_DIR) if entry.is_dir}
    assert [name.endswith("-delete") for name in names] == [True]
    assert not manager.remove_deleted()
    manager.create_log("t", 0, TOPIC_ID, CONFIG)
    clock.advance(1000)
    while manager.remove_deleted():
        continue
    assert {entry.name for entry in env.fs.list_dir(LOG_DIR) if entry.is_dir} == {"t-0"}


def test_left_over_deletions_go_on_at_the_next_start() -> None:
    env = sim_env()
    manager = with_log(env)
    manager.delete_log("t", 0)
    manager.close()
    again = started(env)
    assert not again.logs
    while again.remove_deleted():
        continue
    assert not [entry for entry in env.fs.list_dir(LOG_DIR) if entry.is_dir]


def test_a_log_that_cannot_be_made_does_not_exist() -> None:
    env = sim_env()
    manager = started(env)
    disk_of(env).inject("write", path="partition.metadata", error="enospc")
    with pytest.raises(DiskError):
        manager.create_log("t", 0, TOPIC_ID, CONFIG)
    assert not manager.logs
    assert not env.fs.exists(f"{LOG_DIR}/t-0")
    manager.create_log("t", 0, TOPIC_ID, CONFIG)


def test_the_topic_s_id_lies_beside_its_log() -> None:
    env = sim_env()
    with_log(env)
    assert read_partition_metadata(env.fs, f"{LOG_DIR}/t-0/partition.metadata") == TOPIC_ID
    assert started(sim_env(fs=disk_of(env).after_kill())).logs["t", 0].topic_id == TOPIC_ID


def test_a_kafka_directory_is_opened_and_its_own_log_left_alone() -> None:
    env = sim_env()
    with_log(env).close()
    fs = env.fs
    for entry in fs.list_dir(f"{LOG_DIR}/t-0"):
        if entry.name.endswith(".zones"):
            fs.remove(f"{LOG_DIR}/t-0/{entry.name}")
    preallocated = fs.open(f"{LOG_DIR}/t-0/{0:020d}.timeindex")
    preallocated.truncate(1200)
    for name in ("__cluster_metadata-0", "t-1.abc-future"):
        fs.make_dir(f"{LOG_DIR}/{name}")
    manager = started(env)
    assert list(manager.logs) == [("t", 0)]
    log = manager.logs["t", 0]
    assert log.search.first_at_or_after(1003, below=20) == (1003, 3, 0)
    assert not fs.list_dir(f"{LOG_DIR}/__cluster_metadata-0")


def test_the_producers_of_all_logs_are_known() -> None:
    env = sim_env()
    manager = started(env)
    log = manager.create_log("t", 0, TOPIC_ID, CONFIG)
    append(log, env.clock.now_ms(), producer_id=4711, producer_epoch=0, base_sequence=0)
    manager.close()
    assert list(started(env).producer_ids()) == [4711]


def test_a_log_whose_disk_failed_is_not_left_clean() -> None:
    env = sim_env()
    manager = with_log(env)
    disk_of(env).inject("sync", path=".log")
    assert not manager.close()
    assert not env.fs.exists(f"{LOG_DIR}/.kafka_cleanshutdown")


def test_many_logs_keep_few_files_open() -> None:
    env = sim_env()
    manager = started(env)
    for index in range(300):
        append(manager.create_log("t", index, TOPIC_ID, CONFIG), 1)
    assert len(manager._pool) <= 256


def test_what_all_logs_remember_of_producers_stays_in_its_share() -> None:
    manager = started(sim_env())
    crowded, quiet = (manager.create_log("t", index, TOPIC_ID, CONFIG) for index in range(2))
    share = 100 * PRODUCER_BYTES

    def come(log: Log, ids: range) -> None:
        for producer in ids:
            batch = build_batch(
                [(1, None, b"v")], producer_id=producer, producer_epoch=0, base_sequence=0
            )
            log.append(memoryview(batch), acks_all=False, leader_epoch=0)

    come(quiet, range(10))
    come(crowded, range(1000, 1080))
    assert not manager.share_producers(share)
    come(crowded, range(1080, 1200))
    assert manager.producers_bytes == 210 * PRODUCER_BYTES
    assert manager.share_producers(share)
    come(crowded, range(1200, 1215))
    assert sorted(crowded.producers.ids()) == list(range(1165, 1215))
    come(quiet, range(10, 20))
    assert sorted(quiet.producers.ids()) == list(range(20)), "it has less than its part"
    assert not manager.share_producers(share)


def test_a_producer_of_old_data_is_known_after_a_stop() -> None:
    """A clean stop may leave its last batch without an answer, and it sends that again."""
    clock = SimClock()
    env = sim_env(clock=clock)
    manager = with_log(env)
    once = build_batch([(1000, None, b"once")], producer_id=7, producer_epoch=0, base_sequence=0)
    log = manager.logs["t", 0]
    sent = append_bytes(log, once)
    make_durable(log)
    clock.advance(5000)
    assert manager.close()
    for passed_ms, is_known in ((10_000, True), (44_999, True), (1, False)):
        clock.advance(passed_ms)
        manager = started(env)
        manager.expire_restored_producers(60_000)
        log = manager.logs["t", 0]
        assert (append_bytes(log, once).last_offset == sent.last_offset) == is_known
        manager.close()
