"""Bounds of share sessions: who takes too many partitions is refused, and nobody else."""

from collections.abc import Callable, Iterable
from uuid import UUID

import pytest

from broker.share import sessions as bounds
from broker.share.sessions import SharedPlace, ShareSessions
from protocol.errors import ErrorCode, KafkaError

INVENTED = UUID(int=7)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> ShareSessions:
    monkeypatch.setattr(bounds, "MAX_PARTITIONS", 100)
    monkeypatch.setattr(bounds, "MAX_OF_CONNECTION", 50)
    monkeypatch.setattr(bounds, "MAX_OF_SESSION", 20)
    return ShareSessions(lambda: 1000)


def places(*numbers: int) -> list[SharedPlace]:
    return [(INVENTED, each) for each in numbers]


def refused(begin: Callable[[], object]) -> bool:
    try:
        begin()
    except KafkaError as error:
        return error.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    return False


def fill(sessions: ShareSessions, members: Iterable[int], connection: int) -> None:
    for each in members:
        sessions.begin("g", f"{connection}-{each}", connection, places(*range(10)))


def test_a_session_is_bounded_and_stays_what_it_was(sessions: ShareSessions) -> None:
    session = sessions.begin("g", "m", 1, places(*range(20)))
    assert refused(lambda: sessions.follow(session, places(20), ()))
    assert (len(session.partitions), sessions.followed) == (20, 20)
    sessions.follow(session, places(20), places(3))
    assert (len(session.partitions), sessions.followed) == (20, 20)
    assert refused(lambda: sessions.begin("g", "n", 1, places(*range(21))))
    assert sessions.followed == 20


def test_a_connection_is_bounded_over_all_its_sessions(sessions: ShareSessions) -> None:
    fill(sessions, range(5), connection=1)
    assert refused(lambda: sessions.begin("g", "one too many", 1, places(0)))
    assert not refused(lambda: sessions.begin("g", "another", 2, places(0)))


def test_at_the_bound_of_all_a_session_goes_on_with_what_it_has(sessions: ShareSessions) -> None:
    fill(sessions, range(5), connection=1)
    fill(sessions, range(5), connection=2)
    honest = sessions.find("g", "1-0")
    assert refused(lambda: sessions.follow(honest, places(11), ()))
    sessions.follow(honest, places(0, 5), ())
    sessions.follow(honest, places(11), places(0))
    assert sessions.followed == 100


def test_a_refused_session_leaves_nothing_behind(sessions: ShareSessions) -> None:
    """Else the partitions of sessions that never were would refuse all others for good."""
    fill(sessions, range(5), connection=1)
    for _ in range(20):
        assert refused(lambda: sessions.begin("g", "m", 1, places(*range(15))))
    for session in sessions.of_connection(1):
        sessions.end(session)
    assert (len(sessions), sessions.followed) == (0, 0)
