"""Data that was read, and is not sent yet when compaction puts another segment in its place."""

from protocol.records.builder import build_batch
from protocol.records.markers import ABORT, Marker, build_marker
from protocol.records.scan import scan_batches
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.validation.internal_batch import own_batch
from tests.support.disk.simenv import sim_env
from tests.support.records.cleaning import COMPACT, clean
from tests.support.records.logs import append_bytes, make_durable, open_log

NOW = 1_700_000_000_000
TOMBSTONES = 100
PRODUCER = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": True}


def test_what_was_aborted_of_it_is_known_although_positions_in_the_new_segment_are_higher() -> None:
    """Tombstones take more room once they have their delete horizon."""
    env = sim_env()
    log = open_log(env, cleanup_policy=COMPACT, index_interval_bytes=100)
    for number in range(TOMBSTONES):
        append_bytes(log, build_batch([(NOW, b"%d" % number, None)]))
    append_bytes(log, build_batch([(NOW, b"a", b"v")], **PRODUCER))  # type: ignore[arg-type]
    size = log.snapshot.end_position
    marker = own_batch(build_marker(Marker(ABORT, 0), 1, 0, NOW), NOW)
    log.append_own(marker, acks_all=False, leader_epoch=0)
    log.roll()
    make_durable(log)
    data = log.read(0, size, up_to=log.snapshot.last_stable_offset, min_one_batch=True)
    assert scan_batches(data.read()).batches[-1][1] == TOMBSTONES
    before = log.search.aborted_in(0, data)
    assert [each.first_offset for each in before] == [TOMBSTONES]

    clean(log, env, CleanerOffsets(env.fs, "/data"))

    assert log.search.aborted_in(0, data) == before
