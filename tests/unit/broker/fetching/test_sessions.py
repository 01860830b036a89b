"""Fetch sessions (KIP-227): epochs, what they remember, and how the cache stays bounded."""

from uuid import UUID

import pytest

from broker.fetching.sessions import (
    EVICTION_SECONDS,
    MAX_EPOCH,
    FetchSession,
    FetchSessions,
    FollowedPartition,
)
from protocol.errors import ErrorCode, KafkaError
from tests.support.disk.simenv import SeededRng, SimClock

NO_ID = UUID(int=0)


def follow(index: int, offset: int = 0, topic: str = "t") -> FollowedPartition:
    return FollowedPartition(topic, NO_ID, index, offset, 1000, -1)


def follow_many(count: int) -> list[FollowedPartition]:
    return [follow(index) for index in range(count)]


@pytest.fixture
def clock() -> SimClock:
    return SimClock()


def cache(clock: SimClock, **limits: int) -> FetchSessions:
    return FetchSessions(clock, SeededRng(), **limits)


def start(sessions: FetchSessions, partitions: int = 1) -> FetchSession:
    session = sessions.create(follow_many(partitions), by_id=False)
    assert session is not None
    return session


def code_of(sessions: FetchSessions, session_id: int, epoch: int, *, by_id: bool = False) -> int:
    with pytest.raises(KafkaError) as refusal:
        sessions.resume(session_id, epoch, by_id=by_id)
    return refusal.value.code


def test_epochs_count_up_and_wrap_to_one(clock: SimClock) -> None:
    sessions = cache(clock)
    session = start(sessions)
    for epoch in (1, 2, 3):
        assert sessions.resume(session.session_id, epoch, by_id=False) is session
    session.epoch = MAX_EPOCH
    sessions.resume(session.session_id, MAX_EPOCH, by_id=False)
    assert session.epoch == 1


def test_a_repeated_epoch_is_refused_and_the_session_lives_on(clock: SimClock) -> None:
    sessions = cache(clock)
    session = start(sessions)
    sessions.resume(session.session_id, 1, by_id=False)
    assert code_of(sessions, session.session_id, 1) == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.resume(session.session_id, 2, by_id=False) is session


def test_unknown_and_closed_sessions(clock: SimClock) -> None:
    sessions = cache(clock)
    session = start(sessions)
    assert code_of(sessions, 12345, 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    sessions.close(session.session_id)
    sessions.close(session.session_id)
    assert code_of(sessions, session.session_id, 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.partition_count == 0


def test_a_session_keeps_to_names_or_to_ids(clock: SimClock) -> None:
    sessions = cache(clock)
    session = start(sessions)
    code = code_of(sessions, session.session_id, 1, by_id=True)
    assert code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_changes_add_replace_and_forget(clock: SimClock) -> None:
    sessions = cache(clock)
    session = start(sessions, partitions=2)
    session.partitions["t", NO_ID, 0].sent_high_watermark = 7
    sessions.update(session, [follow(0, offset=42), follow(9)], [("t", NO_ID, 1)])
    assert [each.index for each in session.partitions.values()] == [0, 9]
    kept = session.partitions["t", NO_ID, 0]
    assert (kept.fetch_offset, kept.sent_high_watermark) == (42, 7)
    assert sessions.partition_count == 2


def test_a_partition_that_gave_data_goes_to_the_end(clock: SimClock) -> None:
    session = start(cache(clock), partitions=3)
    session.served(("t", NO_ID, 0))
    assert [each.index for each in session.partitions.values()] == [1, 2, 0]


def test_a_full_cache_of_young_sessions_gives_none(clock: SimClock) -> None:
    sessions = cache(clock, max_sessions=2)
    start(sessions)
    start(sessions)
    assert sessions.create(follow_many(50), by_id=False) is None
    assert len(sessions) == 2


def test_the_longest_unused_session_gives_way_after_two_minutes(clock: SimClock) -> None:
    sessions = cache(clock, max_sessions=2)
    stale, used = start(sessions), start(sessions)
    clock.advance(int(EVICTION_SECONDS * 1000) + 1)
    sessions.resume(used.session_id, 1, by_id=False)
    start(sessions)
    assert code_of(sessions, stale.session_id, 1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    sessions.resume(used.session_id, 2, by_id=False)


def test_a_larger_session_takes_the_place_of_a_smaller_settled_one(clock: SimClock) -> None:
    sessions = cache(clock, max_sessions=2)
    small, large = start(sessions, 2), start(sessions, 10)
    clock.advance(int(EVICTION_SECONDS * 1000) + 1)
    for session in (small, large):
        sessions.resume(session.session_id, 1, by_id=False)
    assert sessions.create(follow_many(2), by_id=False) is None
    assert sessions.create(follow_many(3), by_id=False) is not None
    assert code_of(sessions, small.session_id, 2) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_all_partitions_together_are_bounded(clock: SimClock) -> None:
    sessions = cache(clock, max_partitions=10)
    session = start(sessions, 6)
    assert sessions.create(follow_many(5), by_id=False) is None
    sessions.update(session, follow_many(10), [])
    with pytest.raises(KafkaError) as refusal:
        sessions.update(session, follow_many(11), [])
    assert refusal.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(sessions), sessions.partition_count) == (0, 0)


def test_no_sessions_when_there_are_no_slots(clock: SimClock) -> None:
    assert cache(clock, max_sessions=0).create(follow_many(1), by_id=False) is None


def test_a_session_without_partitions_takes_a_slot_and_pushes_out_nobody(clock: SimClock) -> None:
    sessions = cache(clock, max_sessions=1)
    first = sessions.create([], by_id=False)
    assert first is not None
    assert (len(sessions), sessions.partition_count, sessions.size_bytes) == (1, 0, 0)
    clock.advance(int(EVICTION_SECONDS * 1000) + 1)
    sessions.resume(first.session_id, 1, by_id=False)
    assert sessions.create([], by_id=False) is None
    sessions.close(first.session_id)
    assert len(sessions) == 0


def test_names_of_topics_that_are_not_there_take_no_more_than_their_share(clock: SimClock) -> None:
    sessions = cache(clock, max_bytes=100_000)
    long = [follow(0, topic="x" * 30_000)]
    made = [sessions.create(long, by_id=False) for _ in range(20)]
    assert [each is not None for each in made] == [True] * 3 + [False] * 17
    assert sessions.size_bytes <= 100_000
    assert sessions.refusals == 17
    first = made[0]
    assert first is not None
    with pytest.raises(KafkaError) as refusal:
        sessions.update(first, [follow(0, topic="y" * 30_000)], [])
    assert refusal.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    for each in made[1:3]:
        assert each is not None
        sessions.update(each, [], [long[0].key])
        sessions.close(each.session_id)
    assert sessions.size_bytes == 0
