"""Asks other nodes for states of share partitions: what one turn of the loop wants goes at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from broker.share.state.over_nodes.operations import StateOperation, request_of, results_of
from protocol.errors import ErrorCode, KafkaError

V = TypeVar("V")

AskNode = Callable[[int, Any], Awaitable[Any]]
"""Sends a request to a node. Raises what the fleet's `Peers` raise."""
MOST_PARTITIONS = 200
"""In one request."""
_NOT_ALLOWED = (
    "node {} refuses this one the right ClusterAction: the user of horolog.fleet.client.config "
    "needs it, or has to be one of super.users"
)

_Asked = tuple[StateOperation[Any], "asyncio.Future[Any]"]


class StateAsking:
    """Requests on their way. Used from the event loop."""

    def __init__(self, ask: AskNode) -> None:
        """Nobody was asked."""
        self._ask = ask
        self._waiting: dict[tuple[int, str, str], list[_Asked]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, node_id: int, operation: StateOperation[V]) -> V:
        """The answer of a node. KafkaError, and what the node's client raises."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._flush)
        answer: asyncio.Future[V] = loop.create_future()
        place = node_id, operation.name, operation.key.group
        self._waiting.setdefault(place, []).append((operation, answer))
        return await answer

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for (node_id, _, _), asked in waiting.items():
            for at in range(0, len(asked), MOST_PARTITIONS):
                some = asked[at : at + MOST_PARTITIONS]
                task = asyncio.ensure_future(self._send(node_id, some))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _send(self, node_id: int, asked: Sequence[_Asked]) -> None:
        try:
            response = await self._ask(node_id, request_of([each for each, _ in asked]))
            results = results_of(asked[0][0].key.group, response)
        except Exception as error:  # noqa: BLE001 - whoever asked judges it
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
            return
        for operation, answer in asked:
            if not answer.done():
                _settle(node_id, operation, answer, results.get(operation.key))


def _settle(
    node_id: int, operation: StateOperation[Any], answer: "asyncio.Future[Any]", result: Any
) -> None:
    if result is None:
        text = f"node {node_id} says nothing of {operation.key.owner}"
        answer.set_exception(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text))
    elif result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        text = _NOT_ALLOWED.format(node_id)
        answer.set_exception(KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, text))
    elif result.error_code:
        answer.set_exception(KafkaError(_code(result.error_code), result.error_message or ""))
    else:
        answer.set_result(operation.value(result))


def _code(number: int) -> ErrorCode:
    """A node of a later version may have other codes."""
    return ErrorCode(number) if number in set(ErrorCode) else ErrorCode.UNKNOWN_SERVER_ERROR
