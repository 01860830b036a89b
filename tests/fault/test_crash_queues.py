"""The power goes at every call of a broker with a share group: answered acknowledgements hold."""

import pytest

from broker.partitions.writer import PartitionWriter
from broker.share.state.needed import NeededOffsets
from tests.support.worlds.broker_lives import BrokenPromiseError, run


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


def test_a_state_that_outlives_its_records_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of records that a power cut took would be that of new ones."""
    monkeypatch.setattr(PartitionWriter, "durable_up_to", lambda *_: None)
    with pytest.raises(BrokenPromiseError, match="is skipped"):
        run("queues", 6)


def test_a_state_that_goes_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NeededOffsets, "first", lambda _, __, end_offset: end_offset)
    with pytest.raises(BrokenPromiseError, match="no state"):
        run("queues", 2)
