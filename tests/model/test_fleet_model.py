"""Histories of a fleet, by seed: nodes that die, stop, are cut off and wake, on a catalog whose
answers are lost, late and doubled. `scripts/prove fleet` plays more of them.
"""

import pytest

from broker.fleet.checkpointer import Checkpointer
from broker.fleet.life import Life
from broker.transactions.over_nodes.fleet_admission import FleetAdmission
from broker.transactions.transaction import Place
from protocol.errors import KafkaError
from tests.prove import quietly
from tests.support.fleet.fleet_history import play
from tests.support.fleet.machines.sim_node import Logs
from tests.support.fleet.transaction_history import play_transactions

HISTORIES = 60
REAL_HISTORIES = 40
TIERED_HISTORIES = 24
TRANSACTION_HISTORIES = 80


@pytest.mark.parametrize("part", range(4))
def test_nothing_acknowledged_is_lost_or_there_twice(part: int) -> None:
    with quietly():
        for seed in range(part, HISTORIES, 4):
            play(seed)


@pytest.mark.parametrize("part", range(4))
def test_with_real_logs_that_lose_what_was_not_synced(part: int) -> None:
    with quietly():
        for seed in range(part, REAL_HISTORIES, 4):
            play(seed, Logs.REAL)


@pytest.mark.parametrize("part", range(4))
def test_with_segments_in_a_store_that_fails(part: int) -> None:
    with quietly():
        for seed in range(part, TIERED_HISTORIES, 4):
            play(seed, Logs.TIERED)


@pytest.mark.parametrize("part", range(4))
def test_with_compacted_segments_in_such_a_store(part: int) -> None:
    with quietly():
        for seed in range(part, TIERED_HISTORIES, 4):
            play(seed, Logs.COMPACTED)


def test_commits_go_on_when_all_else_ends_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Checkpointer, "when_due", fail)
    monkeypatch.setattr(Life, "_report_loads", fail)
    with quietly(), pytest.raises(AssertionError, match="nobody expected"):
        play(3)


@pytest.mark.parametrize("part", range(4))
def test_transactions_are_whole_on_all_nodes(part: int) -> None:
    with quietly():
        lived = [play_transactions(seed) for seed in range(part, TRANSACTION_HISTORIES, 4)]
    assert sum(each.committed for each in lived) > 3 * len(lived)
    assert sum(each.aborted for each in lived) > len(lived)
    assert sum(each.joined for each in lived) > 2 * len(lived)


def test_a_leader_that_asks_no_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def admitted(*_: object, **__: object) -> dict[Place, KafkaError]:
        return {}

    monkeypatch.setattr(FleetAdmission, "admit", admitted)

    def some() -> None:
        for seed in range(30):
            play_transactions(seed)

    with quietly(), pytest.raises(AssertionError, match=r"half committed|open for ever"):
        some()


def test_histories_have_what_they_are_about() -> None:
    with quietly():
        lived = [play(seed) for seed in range(12)]
    assert sum(each.lives for each in lived) > 60
    assert sum(each.shards_taken for each in lived) > 100
    assert len({kind for each in lived for kind in each.faults}) >= 10


def test_a_load_that_waits_for_the_store_since_before_peace_is_waited_for() -> None:
    """Nineteen seconds, which a lane drew just before."""
    with quietly():
        play(10061367, Logs.COMPACTED)


def test_a_seed_is_one_history() -> None:
    with quietly():
        assert play(7) == play(7)
        assert play_transactions(7) == play_transactions(7)
