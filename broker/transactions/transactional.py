"""A transactional id in memory: what is known of it, whose turn it is, when its time is over."""

import asyncio

from broker.transactions.transaction import OVER, PREPARED, Facts, TransactionState


class Transactional:
    """One transactional id. Used from the event loop only."""

    __slots__ = (
        "deadline",
        "entering",
        "facts",
        "is_elsewhere",
        "is_gone",
        "transactional_id",
        "turn",
    )

    def __init__(self, transactional_id: str, facts: Facts) -> None:
        """As it was written, or about to be written for the first time."""
        self.transactional_id = transactional_id
        self.facts = facts
        self.turn = asyncio.Lock()
        """Lock of the one request that may change it."""
        self.deadline = 0.0
        """Time when an open transaction is aborted (monotonic seconds of the broker's clock)."""
        self.entering = 0
        """Requests that wait for partitions to join; others of its producer wait behind them."""
        self.is_gone = False
        """True when it expired while a request waited for the lock."""
        self.is_elsewhere = False
        """True when another node of the fleet has it by now, or this one once more."""

    @property
    def is_open(self) -> bool:
        """True for a transaction whose end is not written yet."""
        return self.facts.state is TransactionState.ONGOING or self.facts.state in PREPARED

    def may_expire(self, before_ms: int) -> bool:
        """True when it has no transaction and was not used since `before_ms`."""
        return self.facts.state in OVER and self.facts.updated_ms <= before_ms

    def __repr__(self) -> str:
        """For log events and failing tests."""
        return f"Transactional({self.transactional_id!r}, {self.facts})"
