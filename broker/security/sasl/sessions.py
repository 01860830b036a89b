"""Sessions: for how long a proof counts, and when its client may prove its name again (KIP-368)."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from broker.security.sasl.exchange import Proof

LEAST_SECONDS = 1.0
"""Between the begins of two re-authentications of a connection, as in Kafka."""


class Session(NamedTuple):
    """A session that is to go on; nothing of this may change."""

    mechanism: str
    user: str


class Lifetimes:
    """The lifetimes of one listener's sessions."""

    def __init__(self, now_ms: Callable[[], int], most_ms: Mapping[str, int]) -> None:
        """`now_ms()` is wall time; `most_ms` by mechanism, 0 or nothing for no limit."""
        self._now_ms = now_ms
        self._most_ms = most_ms

    def of(self, mechanism: str, proof: Proof) -> int | None:
        """Milliseconds that a session lasts which begins now; None: as long as its connection."""
        most = self._most_ms.get(mechanism, 0)
        if proof.ends_ms is None:
            return most or None
        rest = max(0, proof.ends_ms - self._now_ms())
        return min(rest, most) if most else rest


class SessionEnd:
    """The end of one connection's session, in monotonic seconds."""

    __slots__ = ("at", "renewal_began")

    def __init__(self) -> None:
        """The session has no end."""
        self.at: float | None = None
        self.renewal_began: float | None = None

    def is_past(self, now: float) -> bool:
        """True when the session counts no longer."""
        return self.at is not None and now > self.at

    def may_renew(self, now: float) -> bool:
        """True when the client may prove its name again; that is taken for the begin of it."""
        began = self.renewal_began
        if self.at is None or (began is not None and now - began < LEAST_SECONDS):
            return False
        self.renewal_began = now
        return True
