"""What a partition accepts from its producers, and what it takes for a resend."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import TRANSACTIONAL, BatchHeader
from storage.producers.producer_state import (
    MAX_PRODUCERS,
    MAX_SEQUENCE,
    NO_ARRIVAL,
    CompletedTransaction,
    ProducerStates,
)

PRODUCER = 7


def batch(
    sequence: int, count: int = 1, *, epoch: int = 0, producer: int = PRODUCER, txn: bool = False
) -> BatchHeader:
    return BatchHeader(
        base_offset=0, length=100, leader_epoch=-1, magic=2, crc=0,
        attributes=TRANSACTIONAL if txn else 0, last_offset_delta=count - 1, base_timestamp=0,
        max_timestamp=0, producer_id=producer, producer_epoch=epoch, base_sequence=sequence,
        record_count=count,
    )  # fmt: skip


def appended(
    states: ProducerStates,
    header: BatchHeader,
    timestamp: int = 0,
    arrival_ms: int = NO_ARRIVAL,
) -> int:
    """Judge and append at the end, as a log does; the base offset."""
    assert states.check(header) is None
    offset = states.end_offset
    states.update(header, offset, timestamp, arrival_ms)
    return offset


def refusal(states: ProducerStates, header: BatchHeader) -> ErrorCode:
    before = states.end_offset, [(i, e.epoch, e.batches) for i, e in states]
    with pytest.raises(KafkaError) as caught:
        states.check(header)
    assert before == (states.end_offset, [(i, e.epoch, e.batches) for i, e in states])
    return ErrorCode(caught.value.code)


def test_a_producer_that_is_unknown_here_may_start_anywhere() -> None:
    states = ProducerStates()
    appended(states, batch(1234, epoch=5))
    entry = states.get(PRODUCER)
    assert entry is not None
    assert (entry.epoch, entry.last_sequence, entry.last_offset) == (5, 1234, 0)


def test_the_next_sequence_follows_the_last() -> None:
    states = ProducerStates()
    appended(states, batch(0, 10))
    assert appended(states, batch(10, 5)) == 10
    assert states.end_offset == 15
    assert refusal(states, batch(16)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    appended(states, batch(15))


def test_sequences_wrap_around() -> None:
    states = ProducerStates()
    appended(states, batch(MAX_SEQUENCE - 4, 5))
    appended(states, batch(0))
    assert states.check(batch(MAX_SEQUENCE - 4, 5)) is not None
    wrapping = ProducerStates()
    appended(wrapping, batch(MAX_SEQUENCE - 1, 4))
    duplicate = wrapping.check(batch(MAX_SEQUENCE - 1, 4))
    assert duplicate is not None
    assert (duplicate.base_sequence, duplicate.last_sequence) == (MAX_SEQUENCE - 1, 1)
    appended(wrapping, batch(2))
    assert refusal(wrapping, batch(0)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_resend_of_the_last_five_batches_gets_its_old_offset() -> None:
    states = ProducerStates()
    offsets = [appended(states, batch(n * 3, 3), timestamp=100 + n) for n in range(7)]
    for n in range(2, 7):
        duplicate = states.check(batch(n * 3, 3))
        assert duplicate is not None
        assert (duplicate.base_offset, duplicate.timestamp) == (offsets[n], 100 + n)
        assert duplicate.last_offset == offsets[n] + 2
    for n in range(2):
        assert refusal(states, batch(n * 3, 3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_resend_in_other_pieces_is_not_a_duplicate() -> None:
    states = ProducerStates()
    appended(states, batch(0, 3))
    appended(states, batch(3, 3))
    for header in (batch(0, 2), batch(3, 4), batch(1, 2)):
        assert refusal(states, header) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_starts_at_zero_and_forgets_the_old_batches() -> None:
    states = ProducerStates()
    appended(states, batch(0, 10))
    assert refusal(states, batch(10, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    appended(states, batch(0, 10, epoch=1))
    assert states.end_offset == 20
    assert states.check(batch(0, 10, epoch=1)) is not None


def test_an_old_epoch_is_fenced_even_for_what_it_sent_before() -> None:
    states = ProducerStates()
    appended(states, batch(0))
    appended(states, batch(0, epoch=1))
    for sequence in (0, 1, 99):
        assert refusal(states, batch(sequence)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_do_not_see_each_other() -> None:
    states = ProducerStates()
    appended(states, batch(0))
    appended(states, batch(50, producer=8))
    appended(states, batch(1))
    appended(states, batch(51, producer=8))
    assert len(states) == 2


def test_an_open_transaction_admits_nothing_outside_of_it() -> None:
    states = ProducerStates()
    appended(states, batch(0, txn=True))
    assert refusal(states, batch(1)) == ErrorCode.INVALID_TXN_STATE
    appended(states, batch(1, txn=True))
    assert states.first_unstable_offset == states.first_open_offset == 0


def test_an_ended_transaction_is_unstable_until_the_high_watermark_passes_its_marker() -> None:
    states = ProducerStates()
    appended(states, batch(0, 3))
    appended(states, batch(3, 2, txn=True))
    marker = states.end_offset
    completed = states.end_transaction(PRODUCER, 0, 4, marker, 99, is_aborted=True)
    assert completed == CompletedTransaction(PRODUCER, 3, 5, 6, is_aborted=True)
    assert states.end_offset == 6
    assert states.first_open_offset is None
    states.high_watermark_moved(5)
    assert states.first_unstable_offset == 3
    states.high_watermark_moved(6)
    assert states.first_unstable_offset is None
    entry = states.get(PRODUCER)
    assert entry is not None
    assert (entry.coordinator_epoch, entry.last_timestamp, entry.last_sequence) == (4, 99, 4)
    appended(states, batch(5))


def test_the_stable_offset_after_an_abort_is_where_another_transaction_is_open() -> None:
    states = ProducerStates()
    appended(states, batch(0, txn=True))
    appended(states, batch(0, producer=8, txn=True))
    completed = states.end_transaction(PRODUCER, 0, 0, 2, 0, is_aborted=True)
    assert completed is not None
    assert completed.last_stable_offset == 1
    assert states.first_unstable_offset == 0
    states.high_watermark_moved(3)
    assert states.first_unstable_offset == 1


def test_a_marker_without_a_transaction_ends_nothing_but_bumps_the_epoch() -> None:
    states = ProducerStates()
    appended(states, batch(0, 5))
    assert states.end_transaction(PRODUCER, 3, 0, 5, 0, is_aborted=False) is None
    assert states.first_unstable_offset is None
    assert refusal(states, batch(5)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(states, batch(5, epoch=3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    appended(states, batch(0, epoch=3))


def test_a_producer_of_which_a_marker_alone_is_left_may_go_on_anywhere() -> None:
    """The log begins behind its batches: a leader that replays it knows no sequence of them."""
    states = ProducerStates()
    states.log_start_offset = 20
    states.end_transaction(PRODUCER, 2, 0, 20, 0, is_aborted=False)
    assert refusal(states, batch(40, epoch=1)) == ErrorCode.INVALID_PRODUCER_EPOCH
    appended(states, batch(40, epoch=2))
    assert refusal(states, batch(42, epoch=2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    states.end_transaction(PRODUCER, 3, 0, 22, 0, is_aborted=False)
    assert refusal(states, batch(41, epoch=3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_that_never_wrote_to_a_whole_log_begins_with_sequence_0() -> None:
    states = ProducerStates()
    states.end_transaction(PRODUCER, 2, 0, 20, 0, is_aborted=True)
    assert refusal(states, batch(40, epoch=2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    appended(states, batch(0, epoch=2))


def test_producers_are_forgotten_by_the_time_of_their_messages() -> None:
    states = ProducerStates()
    appended(states, batch(0), timestamp=1000)
    appended(states, batch(0, producer=8), timestamp=2000)
    appended(states, batch(0, producer=9, txn=True), timestamp=0)
    assert states.expire(1999, 1000) == []
    assert states.expire(2000, 1000) == [PRODUCER]
    assert states.expire(10**12, 1000) == [8]
    assert states.get(9) is not None, "an open transaction keeps its producer"
    appended(states, batch(77))


def test_a_producer_of_old_data_is_kept_while_it_writes() -> None:
    """Kafka forgets it at once, and has twice what it sends again."""
    states = ProducerStates()
    appended(states, batch(0), timestamp=1000, arrival_ms=50_000)
    assert states.expire(50_999, 1000) == []
    assert states.expire(51_000, 1000) == [PRODUCER]


def test_one_that_was_there_when_the_log_was_opened_counts_from_the_last_write() -> None:
    states = ProducerStates()
    appended(states, batch(0), timestamp=1000)
    states.restored_below, states.written_ms = 100, 50_000
    states.expire_restored(50_999, 1000)
    assert states.ids() == [PRODUCER]
    assert states.expire(40_000, 1000) == [], "the clock was ahead"
    states.expire_restored(40_999, 1000)
    assert states.ids() == [PRODUCER]
    states.expire_restored(41_000, 1000)
    assert states.ids() == []


def test_a_producer_from_the_future_is_forgotten_in_time_too() -> None:
    states = ProducerStates()
    appended(states, batch(0), timestamp=2**62)
    assert states.expire(5000, 1000) == []
    assert states.expire(5999, 1000) == []
    assert states.expire(6000, 1000) == [PRODUCER]


def test_everything_can_be_forgotten() -> None:
    states = ProducerStates()
    appended(states, batch(0, txn=True))
    states.clear(42)
    assert (len(states), states.end_offset, states.first_unstable_offset) == (0, 42, None)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 1)), max_size=40))
def test_it_agrees_with_a_log_that_remembers_everything(
    sends: list[tuple[int, int, int]],
) -> None:
    """Model: all batches of the present epoch in a list; a send resumes `back` batches ago."""
    states = ProducerStates()
    epoch, log = 0, [(0, 1)]
    appended(states, batch(0))
    for back, count, bump in sends:
        if bump:
            epoch, log = epoch + 1, []
        first = sum(n for _, n in log[: len(log) - back]) if back else sum(n for _, n in log)
        header = batch(first, count, epoch=epoch)
        remembered = log[-5:]
        if first == sum(n for _, n in log):
            appended(states, header)
            log.append((first, count))
        elif (first, count) in remembered:
            assert states.check(header) is not None
        else:
            assert refusal(states, header) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_so_many_producers_are_remembered_and_the_one_idle_for_longest_goes() -> None:
    states = ProducerStates()
    for producer in range(MAX_PRODUCERS):
        appended(states, batch(0, producer=producer))
    appended(states, batch(1, producer=0))
    appended(states, batch(0, producer=MAX_PRODUCERS))
    assert len(states) == MAX_PRODUCERS
    assert states.get(0) is not None
    assert states.get(1) is None
    assert states.check(batch(0, producer=2)) is not None, "a resend is still known for one"


def test_no_producer_with_an_open_transaction_is_dropped() -> None:
    states = ProducerStates()
    first = appended(states, batch(0, producer=1_000_000, txn=True))
    for producer in range(2 * MAX_PRODUCERS):
        appended(states, batch(0, producer=producer))
    assert len(states) == MAX_PRODUCERS
    assert states.first_open_offset == first
    ended = states.end_transaction(1_000_000, 0, 0, states.end_offset, 0, is_aborted=True)
    assert ended is not None
    assert ended.first_offset == first
