"""Events of a share partition, and what it says: Kafka 4.3's timelines, and rules one by one."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from broker.share.acknowledge import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    AcknowledgedPart,
    segments_of,
)
from broker.share.acquire import Acquired, Ask, Fetched, Range
from broker.share.partition import SharePartition
from broker.share.states import ACKNOWLEDGED, ARCHIVED, AVAILABLE, ShareRules, StateBatch
from protocol.apis.share_acknowledge import AcknowledgementBatch
from protocol.errors import ErrorCode, KafkaError
from tests.support.histories.share_timer import ByHand

ALL = Ask(500, 500)


class World(NamedTuple):
    """A partition, its log, and locks that end by hand."""

    partition: SharePartition
    timer: ByHand
    log: list[Range]

    def fetch(
        self, member: str = "m", ask: Ask = ALL, aborted: Sequence[Range] = ()
    ) -> list[Acquired]:
        at = self.partition.next_fetch()
        assert at is not None
        read = [batch for batch in self.log if batch[1] >= at]
        return self.partition.acquire(member, Fetched(at, read, aborted), ask)

    def say(
        self, *segments: tuple[int, int, int], member: str = "m"
    ) -> tuple[int, int, list[StateBatch]]:
        """The write of an acknowledgement: start, finished, batches; it becomes durable."""
        write = self.partition.acknowledge(member, [AcknowledgedPart(*each) for each in segments])
        assert write is not None
        self.partition.written(write)
        return write.start_offset, write.finished, write.batches

    def lock_ends(self) -> tuple[int, int, list[StateBatch]]:
        write = self.partition.lock_ended(self.timer.take())
        assert write is not None
        self.partition.written(write)
        return write.start_offset, write.finished, write.batches

    def refused(self, *segments: tuple[int, int, int], member: str = "m") -> ErrorCode:
        with pytest.raises(KafkaError) as error:
            self.partition.acknowledge(member, [AcknowledgedPart(*each) for each in segments])
        return error.value.code


def world(*log: Range, rules: ShareRules | None = None, start: int = 0) -> World:
    timer = ByHand()
    return World(SharePartition(start, timer, rules or ShareRules()), timer, list(log))


def test_kafkas_timeline_of_suspects() -> None:
    """Six records, limit 5; the client comes too late three times (measured on Kafka 4.3)."""
    it = world((0, 5))
    for count in (1, 2, 3):
        assert it.fetch() == [(0, 5, count)]
        assert it.lock_ends() == (0, 0, [(0, 5, AVAILABLE, count)])
        assert it.refused((0, 5, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    assert it.fetch() == [(0, 2, 4)]
    assert it.say((0, 0, ACCEPT), (1, 1, RELEASE), (2, 2, REJECT)) == (
        0, 2, [(0, 0, ACKNOWLEDGED, 4), (1, 1, AVAILABLE, 4), (2, 2, ARCHIVED, 4)],
    )  # fmt: skip
    assert it.fetch() == [(1, 1, 5)]
    assert it.say((1, 1, RELEASE)) == (1, 2, [(1, 1, ARCHIVED, 5)])
    assert it.partition.start == 3
    assert it.fetch() == [(3, 5, 4)]
    assert it.say((3, 5, ACCEPT)) == (3, 3, [(3, 5, ACKNOWLEDGED, 4)])
    assert (it.partition.start, it.partition.window.in_flight, it.timer.running) == (6, 0, {})


def test_kafkas_timeline_of_renewals() -> None:
    it = world((0, 5))
    assert it.fetch() == [(0, 5, 1)]
    for _ in range(3):
        before = next(iter(it.timer.running))
        assert it.partition.acknowledge("m", [AcknowledgedPart(0, 5, RENEW)]) is None
        assert before not in it.timer.running
        assert len(it.timer.running) == 1
    assert it.say((0, 5, ACCEPT)) == (0, 6, [(0, 5, ACKNOWLEDGED, 1)])
    assert it.timer.running == {}


def test_a_renewed_part_outlives_the_rest() -> None:
    it = world((0, 5))
    it.fetch()
    it.partition.acknowledge("m", [AcknowledgedPart(2, 3, RENEW)])
    assert it.lock_ends() == (0, 0, [(0, 1, AVAILABLE, 1), (4, 5, AVAILABLE, 1)])
    assert it.say((2, 3, ACCEPT)) == (0, 2, [(2, 3, ACKNOWLEDGED, 1)])


def test_batches_are_taken_whole_and_ranges_cut_at_their_ends() -> None:
    it = world((0, 3), (4, 7), (8, 11), (12, 15))
    assert it.fetch(ask=Ask(9, 4)) == [(0, 3, 1), (4, 7, 1), (8, 11, 1)]
    assert it.fetch(ask=Ask(1, 100)) == [(12, 15, 1)]


def test_a_range_reaches_the_wanted_size() -> None:
    it = world((0, 2), (3, 5), (6, 8), (9, 11))
    assert it.fetch(ask=Ask(100, 5)) == [(0, 5, 1), (6, 11, 1)]


def test_record_mode_is_exact_and_leaves_the_rest_free() -> None:
    it = world((0, 9))
    exact = Ask(4, 500, by_record=True)
    assert [it.fetch(ask=exact) for _ in range(3)] == [[(0, 3, 1)], [(4, 7, 1)], [(8, 9, 1)]]


def test_new_records_are_taken_in_up_to_the_limit_and_free_ones_always() -> None:
    it = world((0, 3), (4, 7), (8, 11), rules=ShareRules(5, 8))
    assert it.fetch("a", Ask(8, 4)) == [(0, 3, 1), (4, 7, 1)]
    assert it.partition.next_fetch() is None
    write = it.partition.acknowledge("a", [AcknowledgedPart(4, 7, RELEASE)])
    assert it.partition.next_fetch() is None, "not before it is durable"
    assert write is not None
    it.partition.written(write)
    assert it.fetch("b") == [(4, 7, 2)]
    it.say((0, 3, ACCEPT), member="a")
    assert it.fetch("b") == [(8, 11, 1)]


def test_two_members_hold_different_records() -> None:
    it = world((0, 3), (4, 7))
    assert (it.fetch("a", Ask(1, 1)), it.fetch("b", Ask(1, 1))) == ([(0, 3, 1)], [(4, 7, 1)])
    assert it.refused((0, 3, ACCEPT), member="b") == ErrorCode.INVALID_RECORD_STATE
    assert it.say((4, 7, ACCEPT), member="b") == (0, 4, [(4, 7, ACKNOWLEDGED, 1)])
    assert it.partition.start == 0


def test_all_of_an_acknowledgement_counts_or_nothing() -> None:
    it = world((0, 3), (4, 7))
    it.fetch("a", Ask(1, 1))
    it.fetch("b", Ask(1, 1))
    assert it.refused((0, 3, ACCEPT), (4, 7, ACCEPT), member="a") == ErrorCode.INVALID_RECORD_STATE
    assert it.say((0, 3, ACCEPT), member="a") == (0, 4, [(0, 3, ACKNOWLEDGED, 1)])


def test_what_was_never_delivered_is_no_valid_request() -> None:
    it = world((0, 3))
    assert it.refused((0, 0, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE
    it.fetch()
    assert it.refused((2, 4, ACCEPT)) == ErrorCode.INVALID_REQUEST


def test_an_acknowledgement_under_way_excludes_another() -> None:
    it = world((0, 3))
    it.fetch()
    write = it.partition.acknowledge("m", [AcknowledgedPart(0, 3, ACCEPT)])
    assert it.refused((0, 3, RELEASE)) == ErrorCode.INVALID_RECORD_STATE
    assert write is not None
    it.partition.written(write)
    assert it.partition.acknowledge("m", [AcknowledgedPart(0, 3, ACCEPT)]) is None, (
        "it is done with"
    )


@pytest.mark.parametrize("lock_ended", [False, True])
def test_a_write_that_fails_is_undone(lock_ended: bool) -> None:
    it = world((0, 3))
    it.fetch()
    write = it.partition.acknowledge(
        "m", [AcknowledgedPart(0, 1, ACCEPT), AcknowledgedPart(2, 3, GAP)]
    )
    assert write is not None
    if lock_ended:
        assert it.partition.lock_ended(it.timer.take()) is None
    it.partition.failed(write)
    assert (it.partition.start, it.partition.window.finished) == (0, 0)
    if lock_ended:
        assert it.fetch("other") == [(0, 3, 2)]
    else:
        assert it.say((0, 3, ACCEPT)) == (0, 4, [(0, 3, ACKNOWLEDGED, 1)])


def test_the_end_of_a_session_gives_back_what_it_held() -> None:
    it = world((0, 3), (4, 7))
    it.fetch("a", Ask(1, 1))
    it.fetch("b", Ask(1, 1))
    write = it.partition.release("a")
    assert write is not None
    assert write.batches == [(0, 3, AVAILABLE, 1)]
    it.partition.written(write)
    assert it.partition.release("a") is None
    assert it.fetch("b") == [(0, 3, 2)]


def test_what_the_log_lost_is_done_with() -> None:
    """Free records go at once, held ones when their lock ends; neither is stored."""
    it = world((0, 3), (4, 7), (8, 11))
    it.fetch("a", Ask(1, 1))
    it.fetch("b", Ask(1, 1))
    it.say((0, 3, RELEASE), member="a")
    assert it.partition.log_starts_at(6)
    assert (it.partition.start, it.partition.next_fetch()) == (6, 8)
    assert it.partition.acknowledge("b", [AcknowledgedPart(4, 5, ACCEPT)]) is None
    assert it.partition.acknowledge("a", [AcknowledgedPart(0, 3, ACCEPT)]) is None
    assert it.lock_ends() == (6, 0, [(6, 7, AVAILABLE, 1)])
    assert it.fetch("a") == [(6, 7, 2), (8, 11, 1)]
    assert not it.partition.log_starts_at(6)


def test_what_compaction_took_is_finished() -> None:
    it = world((0, 1), (2, 3), (4, 5))
    it.fetch(ask=Ask(6, 1))
    it.say((0, 5, RELEASE))
    it.log.pop(1)
    it.say(*[(part.first, part.last, ACCEPT) for part in it.fetch(ask=Ask(1, 1))])
    assert it.partition.start == 2
    assert it.fetch() == [(4, 5, 2)]
    assert it.partition.start == 4


def test_aborted_batches_are_not_told() -> None:
    it = world((0, 3), (4, 5), (6, 9))
    assert it.fetch(aborted=[(4, 5)]) == [(0, 3, 1), (6, 9, 1)]
    assert it.say((0, 3, ACCEPT), (6, 9, ACCEPT)) == (
        0, 10, [(0, 3, ACKNOWLEDGED, 1), (6, 9, ACKNOWLEDGED, 1)],
    )  # fmt: skip


def test_only_aborted_batches_move_the_start() -> None:
    it = world((0, 3))
    assert it.fetch(aborted=[(0, 3)]) == []
    assert (it.partition.start, it.timer.running) == (4, {})


def test_a_restart_goes_on_from_what_was_stored() -> None:
    it = world((10, 14), (15, 19), (20, 24), (25, 29), start=10)
    it.partition.restore(
        [StateBatch(10, 11, ACKNOWLEDGED, 1), StateBatch(14, 16, AVAILABLE, 2),
         StateBatch(20, 24, ARCHIVED, 5)]
    )  # fmt: skip
    assert (it.partition.start, it.partition.window.finished) == (12, 5)
    assert it.fetch() == [(12, 13, 1), (14, 16, 3), (17, 19, 1), (25, 29, 1)]


@pytest.mark.parametrize(
    "stored",
    [
        [StateBatch(2, 3, AVAILABLE, 1), StateBatch(3, 4, ACKNOWLEDGED, 1)],
        [StateBatch(2, 1, AVAILABLE, 1)],
        [StateBatch(0, 1, AVAILABLE, 1)],
    ],
)
def test_stored_states_that_contradict_each_other_are_refused(stored: list[StateBatch]) -> None:
    with pytest.raises(ValueError, match="stored states"):
        world(start=1).partition.restore(stored)


def ranges(*some: tuple[int, int, list[int]]) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, types in some
    ]


def test_types_of_a_range_make_segments() -> None:
    found = segments_of(ranges((0, 4, [1, 1, 2, 3, 3]), (7, 9, [4])), may_renew=True)
    assert found == [(0, 1, 1), (2, 2, 2), (3, 4, 3), (7, 9, 4)]


@pytest.mark.parametrize(
    "some",
    [
        [(3, 2, [1])], [(0, 3, [1]), (2, 4, [1])], [(5, 6, [1]), (0, 1, [1])], [(0, 2, [1, 1])],
        [(0, 2, [])], [(0, 2, [5])], [(0, 2, [-1])], [(0, 2, [4])], [(-2, 0, [1])],
        [(0, 1, [1, 1, 1])],
    ],
)  # fmt: skip
def test_ranges_that_make_no_sense_are_no_valid_request(
    some: list[tuple[int, int, list[int]]],
) -> None:
    with pytest.raises(KafkaError) as error:
        segments_of(ranges(*some), may_renew=False)
    assert error.value.code == ErrorCode.INVALID_REQUEST


def test_a_range_that_begins_where_another_ends_is_held_no_longer() -> None:
    with pytest.raises(KafkaError) as error:
        segments_of(ranges((0, 3, [1]), (3, 4, [1])), may_renew=False)
    assert error.value.code == ErrorCode.INVALID_RECORD_STATE, "as Kafka 4.3 answers"
