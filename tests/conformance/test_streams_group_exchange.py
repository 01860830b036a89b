"""A data directory with a streams group goes from a real Kafka 4.3 to us and back: each goes on
where the other one was.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.test_streams_group_differential import COMMON, KAFKA, Side, stateful
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
GROUP = "goes"


def visit(node: NodeProcess, held: dict[str, int], work: Callable[[Side], None]) -> list[object]:
    """Runs the work on a started broker, with the epochs that members had; what was described."""
    with node as running:
        side = Side(running.bootstrap, is_new=not held)
        side.epochs |= held
        work(side)
        side.said.clear()
        side.describe(GROUP)
        held |= side.epochs
        side.wire.close()
    return side.said


def test_each_goes_on_where_the_other_was(tmp_path: Path) -> None:
    directory, held = tmp_path / "data", dict[str, int]()

    def begin(side: Side) -> None:
        side.beat(GROUP, "a", topology=stateful(GROUP))
        side.made(GROUP, "a")
        side.commit(GROUP, "a", side.epochs[f"{GROUP}/a"], "four")

    def go_on(side: Side) -> None:
        answer = side._beat(GROUP, "a", None)
        assert answer.error_code == 0, answer
        side._beat(GROUP, "a", None)
        side.said.clear()
        side.fetch(GROUP, "a", side.epochs[f"{GROUP}/a"])
        assert side.said == [("fetch", 0, 1)]

    first = visit(start_kafka(directory, KAFKA), held, begin)
    [(code, _, _, state, epoch, _, *rest)] = first  # type: ignore[misc]
    assert (code, state) == (0, "Stable")
    for number in range(4):
        node = start_broker(directory, COMMON) if number % 2 == 0 else start_kafka(directory, KAFKA)
        [again] = visit(node, held, go_on)
        code, _, _, state, later, assigned, *after = again  # type: ignore[misc]
        assert (code, state) == (0, "Stable")
        assert epoch <= later == assigned <= epoch + 1, "at most for another hash of the topics"
        assert _without_epochs(after) == _without_epochs(rest)
        epoch = later


def _without_epochs(described: list[object]) -> list[object]:
    operations, topology, [member] = described  # type: ignore[misc]
    return [operations, topology, member[member.index("client_id") :]]
