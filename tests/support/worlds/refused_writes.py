"""Writes of groups' rows that the log refuses."""

from collections.abc import Callable, Sequence
from typing import Any

from broker.runtime.deferred import Deferred, refused
from broker.state.state_topic import Row
from protocol.errors import ErrorCode, KafkaError
from tests.support.worlds.group_world import GroupWorld


class RefusedWrites:
    """Refuses writes of rows that `is_refused` picks, and does not write them."""

    def __init__(self, world: GroupWorld) -> None:
        self.topic: Any = world.broker.groups.topic
        self.is_refused: Callable[[Sequence[Row]], bool] = lambda _: True
        self._write = self.topic.write
        self.topic.write = self.write

    def write(self, owner: str, rows: Sequence[Row], *rest: Any, **how: Any) -> Deferred[None]:
        if self.is_refused(rows):
            return refused(KafkaError(ErrorCode.NOT_COORDINATOR))
        answer: Deferred[None] = self._write(owner, rows, *rest, **how)
        return answer

    def end(self) -> None:
        self.is_refused = lambda _: False
