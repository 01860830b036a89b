"""Due times of a log's records: by their batches' bounds where that is enough."""

from typing import Any

import pytest

from broker.share.waits import due_times
from broker.share.waits.due_times import DelayTerms, DueReader, DueTimes
from broker.share.waits.wheel import Due
from protocol.records.batch import CorruptBatch
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.search.segment_access import NotInMemory
from storage.validation.unpacking import TooMuchWork, Work
from tests.support.records.clock_logs import NOW, VALUE, env_of, filled
from tests.support.records.logs import append

BY_TIME = DelayTerms("record-time", 0, 100_000)


def read(log: Any, terms: DelayTerms, now_ms: int, work: Work | None = None) -> DueTimes:
    end = log.snapshot.high_watermark
    data = log.read(0, 1 << 30, up_to=end, min_one_batch=True)
    return DueReader(log.search, data.slices[0], work).read(terms, now_ms)


def later(found: DueTimes) -> list[Due]:
    return [due for batch in found.batches for due in batch.later]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The base offsets of the batches that were opened."""
    opened: list[int] = []
    located = due_times.located

    def noted(records: Any, header: Any, *, places: bool) -> Any:
        opened.append(header.base_offset)
        return located(records, header, places=places)

    monkeypatch.setattr(due_times, "located", noted)
    return opened


def test_batches_that_are_due_are_not_opened(opened: list[int]) -> None:
    log = filled(10)  # number n has the time NOW + 10 n
    found = read(log, BY_TIME, NOW + 75)
    assert later(found) == [Due(NOW + 80, 8, 8), Due(NOW + 90, 9, 9)]
    assert [each[:2] for each in found.batches] == [(number, number) for number in range(10)]
    assert opened == [], "all records of a batch are due at one time"


def test_only_batches_with_records_of_different_times_are_opened(opened: list[int]) -> None:
    log = filled(3)
    batch = build_batch([(NOW + 5000, None, b"a"), (NOW, None, b"b"), (NOW + 9000, None, b"c")])
    log.append(memoryview(batch), acks_all=False, leader_epoch=0)
    found = read(log, BY_TIME, NOW + 100)
    assert later(found) == [Due(NOW + 5000, 3, 3), Due(NOW + 9000, 5, 5)]
    assert opened == [3]
    opened.clear()
    assert later(read(log, BY_TIME, NOW + 9000)) == []
    assert opened == []


def test_a_delay_after_arrival_opens_nothing(opened: list[int]) -> None:
    log = filled(4)
    found = read(log, DelayTerms("none", 1000, 5000), NOW + 1010)
    assert later(found) == [Due(NOW + 1020, 2, 2), Due(NOW + 1030, 3, 3)]
    assert opened == []


def test_stamped_batches_are_due_as_a_whole(opened: list[int]) -> None:
    log = filled(2, message_timestamp_type="LogAppendTime")
    assert later(read(log, DelayTerms("record-time", 0, 50), NOW - 5)) == [
        Due(NOW, 0, 0), Due(NOW + 10, 1, 1),
    ]  # fmt: skip
    assert opened == []


def test_nothing_waits_longer_than_it_may() -> None:
    log = filled(4, dirty=(1, 3))
    found = read(log, DelayTerms("record-time", 0, 500), NOW + 100)
    assert later(found) == [Due(NOW + 510, 1, 1), Due(NOW + 530, 3, 3)]
    assert found.bounded == 2
    assert later(read(log, DelayTerms("record-time", 0, 500), NOW + 520)) == [Due(NOW + 530, 3, 3)]


def test_records_without_a_time_are_due() -> None:
    log = filled(1)
    append(log, -1, value=VALUE)
    assert later(read(log, BY_TIME, NOW + 10)) == []


def test_what_unpacks_to_much_takes_a_lane_and_then_more_than_one_try() -> None:
    log = filled(1)
    env_of(log).advance(10)
    rows = [(NOW + 5000 + number, None, bytes(1000)) for number in range(2000)]
    packed = build_batch(rows, codec=Codec.GZIP)
    for _ in range(2):
        log.append(memoryview(bytearray(packed)), acks_all=False, leader_epoch=0)
    with pytest.raises(NotInMemory):
        read(log, BY_TIME, NOW + 100)
    enough = Work(3_000_000, 1 << 31)
    assert len(read(log, BY_TIME, NOW + 100, enough).batches) == 2, "the third batch comes next"
    assert len(later(read(log, BY_TIME, NOW + 100, Work(1 << 30, 1 << 31)))) == 4000


def test_the_first_batch_may_be_too_much() -> None:
    log = filled(0)
    rows = [(NOW + 5000 + number, None, bytes(1000)) for number in range(2000)]
    log.append(memoryview(build_batch(rows, codec=Codec.GZIP)), acks_all=False, leader_epoch=0)
    with pytest.raises(TooMuchWork):
        read(log, BY_TIME, NOW + 100, Work(1000, 1 << 31))


def test_offsets_that_do_not_rise_are_refused() -> None:
    with pytest.raises(CorruptBatch):
        due_times._later_of([5, 4], [NOW + 9, NOW + 10], NOW, (NOW, NOW + 100))
