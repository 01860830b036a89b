"""First batches that a partition refused, of producers that it does not know (Kafka's
`VerificationStateEntry`).

By version 1 of transactions such a producer may begin with any sequence: it may have been
forgotten. So nothing but this tells a batch whose predecessor was refused a moment ago, and comes
again, from the first one. Used from the event loop only.
"""

from typing import NamedTuple

from broker.partitions.leadership import NEW_SECONDS
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place

MOST = 10_000
"""Batches that are remembered; the oldest go first."""


class _Refused(NamedTuple):
    """The lowest sequence that was refused, and when."""

    sequence: int
    at: float


class FirstBatches:
    """Lowest sequences that were refused, while batches behind them may be on their way."""

    def __init__(self) -> None:
        """None was refused."""
        self._refused: dict[tuple[ProducerClaim, Place], _Refused] = {}

    def refused(self, claim: ProducerClaim, place: Place, sequence: int, now: float) -> None:
        """The partition did not take it. A later one changes nothing. `now`: monotonic seconds."""
        self._drop_old(now)
        key = claim, place
        before = self._refused.get(key)
        if before is None or sequence <= before.sequence:
            self._refused.pop(key, None)  # the latest are at the end
            self._refused[key] = _Refused(sequence, now)

    def taken(self, claim: ProducerClaim, place: Place) -> None:
        """The partition knows the producer: its sequences are judged there."""
        self._refused.pop((claim, place), None)

    def is_behind(self, claim: ProducerClaim, place: Place, sequence: int, now: float) -> bool:
        """True when one before it was refused, and comes again first."""
        self._drop_old(now)
        refused = self._refused.get((claim, place))
        return refused is not None and refused.sequence < sequence

    def _drop_old(self, now: float) -> None:
        refused = self._refused
        while refused:
            oldest = next(iter(refused))
            if len(refused) < MOST and now - refused[oldest].at < NEW_SECONDS:
                return
            del refused[oldest]
