"""A transactional id in memory: what is known of it, whose turn it is, when its time is over."""

import asyncio

from broker.transactions.transaction import OVER, PREPARED, Facts, TransactionState


class Transactional:
    """One transactional id. Used from the event loop only."""

    __slots__ = ("deadline", "entering", "facts", "is_gone", "transactional_id", "turn")

    def __init__(self, transactional_id: str, facts: Facts) -> None:
        """As it was written, or about to be written for the first time."""
        self.transactional_id = transactional_id
        self.facts = facts
        self.turn = asyncio.Lock()
        """Held by the one request that may change it."""
        self.deadline = 0.0
        """When an open transaction is aborted (monotonic seconds of the broker's clock)."""
        self.entering = 0
        """Requests that wait for partitions to join; others of its producer wait behind them."""
        self.is_gone = False
        """Whether it has expired while somebody waited for a turn."""

    @property
    def is_open(self) -> bool:
        """Whether it has a transaction whose end is not written yet."""
        return self.facts.state is TransactionState.ONGOING or self.facts.state in PREPARED

    def may_expire(self, before_ms: int) -> bool:
        """Whether it has no transaction, and nobody has used it since `before_ms`."""
        return self.facts.state in OVER and self.facts.updated_ms <= before_ms

    def __repr__(self) -> str:
        """For log events and failing tests."""
        return f"Transactional({self.transactional_id!r}, {self.facts})"
