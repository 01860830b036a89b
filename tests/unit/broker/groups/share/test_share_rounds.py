"""Starts that are set while a member joins a share group, and the other way round: neither undoes
the other, and neither waits for ever.
"""

from typing import Any

from protocol.errors import ErrorCode, KafkaError
from tests.support.worlds.share_group_world import Share, share_world


def begin_at(share: Share, **starts: int) -> Any:
    """The outcome of starts that are set in `p0` and so on of topic t, or its list."""
    topic_id = share.world.broker.topics.image.topics["t"].topic_id
    places = {(topic_id, int(name[1:])): start for name, start in starts.items()}
    came: list[Any] = []
    outcome = share.groups.begin_at(share.group, places)
    outcome.listen(lambda value, error: came.append(value if error is None else error))
    return came


def starts(share: Share) -> dict[int, int]:
    return {
        index: summary.start_offset
        for (_, _, index), (_, summary) in sorted(share.persister.states.items())
    }


def settle(share: Share) -> None:
    while share.persister.waiting:
        share.persister.release()


def read(heard: Any) -> list[int]:
    return sorted(index for each in heard.assigned.values() for index in each)


async def test_a_member_that_joins_meanwhile_keeps_a_start_that_is_being_set() -> None:
    share = await share_world()
    share.persister.waits = True
    altered = begin_at(share, p0=4)
    joined = share.beat("a", 0, "t")
    settle(share)
    assert altered == [{}]
    assert starts(share) == {0: 4, 1: -1}
    assert read(joined[0]) == [0, 1]


async def test_a_start_is_not_set_under_states_that_are_being_made() -> None:
    share = await share_world()
    share.persister.waits = True
    share.beat("a", 0, "t")
    share.beat("a", -1)
    altered = begin_at(share, p0=4)
    assert altered == []
    settle(share)
    assert altered == [{}]
    assert starts(share) == {0: 4, 1: -1}


async def test_a_member_that_came_first_refuses_a_start_that_waited() -> None:
    share = await share_world()
    share.persister.waits = True
    share.beat("a", 0, "t")
    share.beat("a", -1)
    altered = begin_at(share, p0=4)
    joined = share.beat("b", 0, "t")
    settle(share)
    assert altered[0].code == ErrorCode.NON_EMPTY_GROUP
    assert read(joined[0]) == [0, 1]
    assert starts(share) == {0: -1, 1: -1}


async def test_starts_that_cannot_be_set_let_the_member_in() -> None:
    share = await share_world()
    share.persister.waits = True
    altered = begin_at(share, p0=4)
    joined = share.beat("a", 0, "t")
    (waiting,) = share.persister.waiting
    share.persister.waiting = []
    waiting.fail(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    settle(share)
    ((_, error),) = altered[0].items()
    assert error.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert read(joined[0]) == [0, 1]


async def test_a_group_that_cannot_be_stored_lets_the_member_in() -> None:
    share = await share_world(horolog_durability="fsync")
    altered = begin_at(share, p0=4)
    joined = share.beat("a", 0, "t")
    share.world.commit.fail()
    assert altered[0].code == ErrorCode.NOT_COORDINATOR
    assert joined, "it is answered, if with an error"


async def test_a_persister_that_raises_ends_the_round() -> None:
    share = await share_world()
    kept = share.persister.initialize

    def broken(*_: object) -> Any:
        raise RuntimeError("broken")

    share.persister.initialize = broken  # type: ignore[method-assign]
    heard = share.beat("a", 0, "t")
    assert read(heard) == []
    share.persister.initialize = kept  # type: ignore[method-assign]
    share.world.pass_ms(1000)
    share.beat("a", heard.epoch)
    assert starts(share) == {0: -1, 1: -1}


async def test_a_second_start_waits_for_the_first() -> None:
    share = await share_world()
    share.persister.waits = True
    first, second = begin_at(share, p0=4), begin_at(share, p0=7)
    settle(share)
    assert (first, second) == ([{}], [{}])
    assert starts(share) == {0: 7}
