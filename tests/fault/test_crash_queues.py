"""The power goes at every call of a broker with a share group: answered acknowledgements hold, none
comes before its time, none ends without its dead letter.
"""

from types import SimpleNamespace

import pytest

from broker.partitions.writer import PartitionWriter
from broker.runtime.deferred import Deferred
from broker.share.letters.dead_letters import DeadLetters
from broker.share.state.needed import NeededOffsets
from tests.support.worlds.broker_lives import BrokenPromiseError, run
from tests.support.worlds.transaction_world import TransactionWorld


@pytest.mark.parametrize("seed", [4, 11])
def test_acknowledgements_survive_a_power_cut_at_every_call(seed: int) -> None:
    life = run("queues", seed, nested=seed % 2 == 1)
    assert life.points > 100
    finished = [
        fate
        for facts in life.ledger.shares.values()
        for fate in facts.finished.values()
        if fate.latest
    ]
    assert finished, "nothing was ever finished"


@pytest.mark.parametrize("seed", [6, 7])
def test_delays_and_dead_letters_survive_a_power_cut_at_every_call(seed: int) -> None:
    life = run("jobs", seed, nested=seed % 2 == 1)
    assert life.points > 100
    assert any(facts.given_up for facts in life.ledger.shares.values()), "nothing was given up"


def test_an_end_without_its_letter_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        done.resolve(None)
        return done

    monkeypatch.setattr(DeadLetters, "send", nothing)
    with pytest.raises(BrokenPromiseError, match="without a letter"):
        run("jobs", 1)


def test_a_record_before_its_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that is ahead of the one that records arrive by."""

    def ahead(world: TransactionWorld, _: SimpleNamespace) -> SimpleNamespace:
        return SimpleNamespace(look=lambda: False, trusted_ms=lambda: world.clock.now_ms() + 1000)

    monkeypatch.setattr(TransactionWorld, "clock_watch", ahead)
    with pytest.raises(AssertionError, match="before their time"):
        run("jobs", 7)


def test_a_state_that_outlives_its_records_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of records that a power cut took would be that of new ones."""
    monkeypatch.setattr(PartitionWriter, "durable_up_to", lambda *_: None)
    with pytest.raises(BrokenPromiseError, match="is skipped"):
        run("queues", 6)


def test_a_state_that_goes_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NeededOffsets, "first", lambda _, __, end_offset: end_offset)
    with pytest.raises(BrokenPromiseError, match="no state"):
        run("queues", 2)
