"""Writes that a disk has refused: the log of events says so, and /readyz while it goes on.

A failed write leaves nothing behind, and the next one may succeed: so nothing ends, as it does with
an fsync that has failed. But clients repeat what was refused, and only the operator can mend a
disk.
"""

from broker.runtime.event_log import event
from broker.runtime.probes import BrokerProbes
from broker.runtime.wire_error import wire_error
from protocol.errors import KafkaError
from storage.errors import DiskError, StorageError
from storage.log.log import Log

LATELY_SECONDS = 60.0
"""For how long one counts, and the least time between two lines about some."""


class RefusedWrites:
    """Appends of all logs that failed for their disk. Used from any thread."""

    def __init__(self, probes: BrokerProbes) -> None:
        """There was none."""
        self._probes = probes
        self._last: tuple[float, str] | None = None
        self._told_at: float | None = None

    @property
    def fault(self) -> str | None:
        """The last one, for /readyz; None when it is a minute ago."""
        if self._last is None:
            return None
        at, error = self._last
        is_over = self._probes.monotonic() - at >= LATELY_SECONDS
        return None if is_over else f"the disk refuses writes: {error}"

    def refusal(self, log: Log, error: StorageError) -> KafkaError:
        """The answer to whoever wrote to the log. What a disk has refused is noted."""
        if isinstance(error, DiskError):
            self._note(log, error)
        return wire_error(error)

    def _note(self, log: Log, error: DiskError) -> None:
        now = self._probes.monotonic()
        self._probes.write_refused()
        self._last = now, str(error)
        if self._told_at is None or now - self._told_at >= LATELY_SECONDS:
            self._told_at = now
            event("write_refused", "error", log=log, error=error)
