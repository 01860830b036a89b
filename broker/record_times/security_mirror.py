"""The lines of the security audit as records of a topic (`horolog.security.audit.topic`).

The audit's own sink has every line; the topic is for readers elsewhere. What the topic cannot take
waits in memory, and beyond a bound is left out and counted.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice

from broker.record_times.own_topic import ROWS_A_BATCH, OwnTopic
from broker.runtime.event_log import event
from protocol.errors import KafkaError
from storage.errors import StorageError

MAX_LINES = 10_000


class SecurityMirror:
    """Used from the event loop only."""

    def __init__(self, topic: OwnTopic) -> None:
        """Nothing waits."""
        self._topic = topic
        self._lines: deque[str] = deque()
        self.left_out = 0
        """Lines that are not in the topic, since the start."""

    def take(self, lines: Sequence[str]) -> None:
        """Keeps lines for the next `flush`."""
        room = max(0, MAX_LINES - len(self._lines))
        self._lines.extend(lines[:room])
        self.left_out += len(lines) - min(room, len(lines))

    async def flush(self) -> None:
        """Writes what there is, or as much as the topic takes; called once a second."""
        while self._lines:
            rows = [(None, line.encode()) for line in islice(self._lines, ROWS_A_BATCH)]
            try:
                await self._topic.append(rows)
            except (KafkaError, StorageError) as error:
                event(
                    "audit_not_written", "warning",
                    topic=self._topic.name, rows=len(self._lines), error=error,
                )  # fmt: skip
                return
            for _ in rows:
                self._lines.popleft()
