"""States of share partitions in a fleet: each is asked for where its coordinator is, in this node
or another, and once more when that moves (KIP-932's persister).

Of one share partition one request is under way at a time, so that a change that is sent again comes
before the next one; changes that wait meanwhile go together. What may do harm when it comes twice
is not sent again once it may have been carried out. Used from the event loop only.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from broker.fleet.peers.peers import PeerSilent, PeerUnreached
from broker.partitions.leadership import NOBODY
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.runtime.growing_wait import growing_wait
from broker.share.state.coordinator import ShareChange, ShareCoordinator
from broker.share.state.key import ShareKey
from broker.share.state.over_nodes.asking import AskNode, StateAsking
from broker.share.state.over_nodes.operations import (
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    StateOperation,
    WriteState,
)
from broker.share.state.over_nodes.waiting_writes import WaitingWrites
from broker.share.state.remembered import SharePartitionState
from broker.topics.topic_catalog import TopicCatalog
from protocol.errors import ErrorCode, KafkaError

V = TypeVar("V")

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
PATIENCE_SECONDS = 20.0
"""Clients wait 30 s for an answer; a coordinator moves in less."""
NOT_DONE = frozenset((ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE))
"""Codes after which nothing has changed, and another try may succeed."""
UNCLEAR = frozenset((
    ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS,
))  # fmt: skip
"""Codes of a coordinator that may have lost its partition while it wrote."""


class RoutedShareStates:
    """The `ShareStates` of a node, and what its groups need of them."""

    def __init__(
        self,
        local: ShareCoordinator,
        topics: TopicCatalog,
        ask: AskNode,
        monotonic: Callable[[], float],
    ) -> None:
        """Nothing is under way."""
        self._local = local
        self._topics = topics
        self._asking = StateAsking(ask)
        self._monotonic = monotonic
        self._last: dict[ShareKey, asyncio.Task[Any]] = {}
        self._open: dict[ShareKey, WaitingWrites] = {}
        """Changes to which more may be added: nothing else of their share partition waits."""

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> Deferred[None]:
        """As the coordinator has it."""
        return self._begin(InitializeState(key, state_epoch, start_offset))

    def read(self, key: ShareKey, leader_epoch: int) -> Deferred[SharePartitionState]:
        """As the coordinator has it."""
        return self._begin(ReadState(key, leader_epoch))

    def write(self, key: ShareKey, change: ShareChange) -> Deferred[None]:
        """As the coordinator has it."""
        writes = self._open.get(key)
        if writes is not None and writes.takes(change):
            writes.add(change)
            return writes.answer()
        writes = WaitingWrites(change)
        self._begin_next(key, lambda: WriteState(key, writes.closed()), writes.settle)
        self._open[key] = writes
        return writes.answer()

    def delete(self, key: ShareKey) -> Deferred[None]:
        """As the coordinator has it."""
        return self._begin(DeleteState(key))

    def summary(self, key: ShareKey) -> Deferred[SharePartitionState]:
        """As the coordinator has it."""
        return self._begin(ReadSummary(key))

    def is_current(self, key: ShareKey, state_epoch: int) -> bool:
        """Of what another node remembers the next write tells."""
        if not self._local.leads(key):
            return True
        return self._local.is_current(key, state_epoch)

    def epoch_of(self, _: ShareKey, leader_epoch: int) -> int:
        """As `ShareStates` has it."""
        return leader_epoch

    # --- one after another ---

    def _begin(self, operation: StateOperation[V]) -> Deferred[V]:
        answer: Deferred[V] = Deferred()
        self._begin_next(operation.key, lambda: operation, lambda settle: settle(answer))
        return answer

    def _begin_next(
        self,
        key: ShareKey,
        operation: Callable[[], StateOperation[V]],
        each: Callable[[Callable[[Deferred[V]], None]], None],
    ) -> None:
        """Makes the operation when those before it are over; `each` is called with what settles
        an answer.
        """
        self._open.pop(key, None)
        before = self._last.get(key)
        task = asyncio.get_running_loop().create_task(self._run(operation, before))
        self._last[key] = task
        task.add_done_callback(partial(self._ended, key, each))

    async def _run(
        self, operation: Callable[[], StateOperation[V]], before: "asyncio.Task[Any] | None"
    ) -> V:
        if before is not None:
            await asyncio.wait([before])
        return await self._tried(operation())

    def _ended(
        self,
        key: ShareKey,
        each: Callable[[Callable[[Deferred[V]], None]], None],
        task: "asyncio.Task[V]",
    ) -> None:
        if self._last.get(key) is task:
            del self._last[key]
            self._open.pop(key, None)
        each(partial(_settle, task))

    # --- until it succeeds, or cannot ---

    async def _tried(self, operation: StateOperation[V]) -> V:
        end, failures = self._monotonic() + PATIENCE_SECONDS, 0
        while True:
            try:
                return await self._once(operation)
            except (KafkaError, PeerUnreached, PeerSilent) as error:
                failures += 1
                pause = growing_wait(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, failures)
                if not self._may_repeat(operation, error) or self._monotonic() + pause > end:
                    raise _for_callers(error) from error
            await asyncio.sleep(pause)

    async def _once(self, operation: StateOperation[V]) -> V:
        topic = self._local.topic
        await topic.make()
        partition = topic.partitions[topic.index_of(operation.key.owner)]
        elsewhere = partition.leader_elsewhere
        if elsewhere is None:
            found = operation.here(self._local)
            return await wait_for(found) if isinstance(found, Deferred) else found
        if elsewhere.node_id == NOBODY:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"Nobody leads {partition}")
        return await self._asking.ask(elsewhere.node_id, operation)

    def _may_repeat(self, operation: StateOperation[Any], error: Exception) -> bool:
        if isinstance(error, PeerUnreached):
            return True
        if isinstance(error, PeerSilent):
            return operation.repeats
        assert isinstance(error, KafkaError)
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return self._is_there(operation.key)
        return error.code in NOT_DONE or (error.code in UNCLEAR and operation.repeats)

    def _is_there(self, key: ShareKey) -> bool:
        """A topic that the other node has not heard of yet."""
        topic = self._topics.image.by_id.get(key.topic_id)
        return topic is not None and topic.partition(key.partition) is not None


def _settle(task: "asyncio.Task[V]", answer: Deferred[V]) -> None:
    if task.cancelled():
        answer.fail(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The broker is stopping"))
    elif (error := task.exception()) is not None:
        answer.fail(error)
    else:
        answer.resolve(task.result())


def _for_callers(error: Exception) -> KafkaError:
    if isinstance(error, KafkaError):
        return error
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))
