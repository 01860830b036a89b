"""A segment that a run may not touch stays as it is, also where its clean part ends within it."""

from typing import Any

from protocol.records.builder import build_batch
from protocol.records.markers import ABORT, Marker, build_marker
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.log.log import Log
from storage.validation.internal_batch import own_batch
from tests.support.disk.simenv import sim_env
from tests.support.records.cleaning import COMPACT, clean, verdict
from tests.support.records.logs import make_durable, open_log, records_of

NOW = 1_700_000_000_000


def put(log: Log, key: bytes, producer_id: int = -1) -> None:
    of_transaction: dict[str, Any] = {
        "producer_id": producer_id,
        "producer_epoch": 0,
        "base_sequence": 0,
        "transactional": True,
    }
    data = build_batch([(NOW, key, b"v")], **(of_transaction if producer_id >= 0 else {}))
    log.append(memoryview(data), acks_all=True, leader_epoch=0)


def test_aborted_data_stays_aborted_in_a_segment_with_an_open_transaction() -> None:
    """After DeleteRecords the log's dirty part begins within that segment."""
    env = sim_env()
    log = open_log(env, cleanup_policy=COMPACT)
    for key in (b"a", b"b", b"c"):
        put(log, key)
    log.roll()
    put(log, b"a")
    put(log, b"b")
    put(log, b"aborted", producer_id=1)
    marker = own_batch(build_marker(Marker(ABORT, 0), 1, 0, NOW), NOW)
    log.append_own(marker, acks_all=True, leader_epoch=0)
    put(log, b"open", producer_id=2)
    log.roll()
    make_durable(log)
    log.delete_records(4)
    offsets = CleanerOffsets(env.fs, "/data")
    found = verdict(log, env, offsets)
    assert (found.first_dirty, found.first_uncleanable) == (4, 4)
    aborted, before = log.search.aborted(0, 8), records_of(log)
    assert len(aborted) == 1
    clean(log, env, offsets)
    assert log.search.aborted(0, 8) == aborted
    assert records_of(log) == before
