"""Levels of features in a fleet: what all of its living nodes serve."""

from itertools import pairwise

from broker.daemon.fleet_levels import FleetLevels
from broker.fleet.catalog.rows import Incarnation, NodeAddress, NodeRow
from broker.server.features import TRANSACTION_VERSION


def node(node_id: int, life: int = 1, *, joins: bool = True, fenced: bool = False) -> NodeRow:
    address = NodeAddress("h", 1)
    return NodeRow(
        Incarnation(node_id, life), address, "1", 5, 0, fenced, is_draining=False, joins=joins
    )


def level(nodes: list[NodeRow], *, joins: bool = True) -> int:
    [(name, found)] = FleetLevels(lambda: nodes, joins=joins).finalized
    assert name == TRANSACTION_VERSION
    return found


def test_partitions_join_by_themselves_when_every_node_can_have_them_do() -> None:
    assert level([node(1), node(2)]) == 2
    assert level([node(1), node(2, joins=False)]) == 1
    assert level([node(1), node(2, joins=False, fenced=True)]) == 2
    assert level([node(1)], joins=False) == 1
    assert level([]) == 1, "nothing is known yet"


def test_a_node_says_what_it_could_serve() -> None:
    for joins, most in ((True, 2), (False, 1)):
        assert FleetLevels(lambda: [node(1, joins=False)], joins=joins).supported == (
            (TRANSACTION_VERSION, most),
        )


def test_clients_believe_the_newest() -> None:
    """An earlier version comes and goes; each of its lives is a higher number."""
    story = [
        [node(1)],
        [node(1), node(2, joins=False)],
        [node(1), node(2, joins=False, fenced=True)],
        [node(1), node(2, 2, joins=False)],
        [node(1), node(2, 3)],
        [node(1, fenced=True), node(2, 3)],
        [node(1, 2, joins=False), node(2, 3)],
    ]
    assert [level(each) for each in story] == [2, 1, 2, 1, 2, 2, 1]
    epochs = [FleetLevels(lambda: each, joins=True).epoch for each in story]  # noqa: B023
    for (before, after), (first, second) in zip(
        pairwise(epochs), pairwise(map(level, story)), strict=True
    ):
        assert after > before or (after == before and first == second)
