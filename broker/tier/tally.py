"""Counts of the tier's work, and which partitions fail."""

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from storage.log.log import Log
from storage.tier.orphans import Amount, SweepReport

Name = tuple[str, int]


class TierTally:
    """Written on the event loop; read by the scrape from its own thread."""

    def __init__(self) -> None:
        """Nothing was done."""
        self.copied_segments = self.copied_bytes = 0
        self.dropped_segments = self.dropped_bytes = 0
        self.failures = 0
        self.failing: Mapping[Name, str] = {}
        """Partitions whose last round failed, and why; replaced, never changed."""
        self.orphans = Amount()
        """Objects that nothing names, as the last sweep saw them, without those it removed."""
        self.unknown = Amount()
        """Objects of topics of which the broker knows nothing, as the last sweep saw them."""
        self.removed_orphans = self.removed_manifests = self.failed_sweeps = self.sweeps = 0
        self._stopped: dict[Log, str] = {}
        self.stopped_by: Mapping[str, int] = {}
        """Partitions of which nothing more is copied, by the name of the error."""
        self.unreachable_because = ""
        """Reason why the store was not usable at all the last time; empty when it was."""

    def copied(self, size_bytes: int) -> None:
        """One segment is in the store."""
        self.copied_segments += 1
        self.copied_bytes += size_bytes

    def dropped(self, segments: int, size_bytes: int) -> None:
        """Local segments are only in the store from now on."""
        self.dropped_segments += segments
        self.dropped_bytes += size_bytes

    def succeeded(self, log: Log) -> None:
        """The partition's round went through."""
        name = log.topic, log.partition
        if name in self.failing:
            self.failing = {key: why for key, why in self.failing.items() if key != name}

    def failed(self, log: Log, error: Exception, *, is_final: bool) -> bool:
        """The partition's round failed; True when that is news."""
        self.failures += 1
        name, why = (log.topic, log.partition), str(error)
        is_news = self.failing.get(name) != why
        self.failing = {**self.failing, name: why}
        if is_final:
            self._stopped[log] = type(error).__name__
            self.stopped_by = Counter(self._stopped.values())
        return is_news

    def keep(self, served: AbstractSet[Log], wanted: AbstractSet[Name]) -> None:
        """Logs that are not served any longer have stopped nothing; those that are not to be copied
        do not fail.
        """
        if not self._stopped.keys() <= served:
            self._stopped = {log: why for log, why in self._stopped.items() if log in served}
            self.stopped_by = Counter(self._stopped.values())
        if not self.failing.keys() <= wanted:
            self.failing = {name: why for name, why in self.failing.items() if name in wanted}

    def unreachable(self, error: Exception) -> bool:
        """The store does not answer at all; True when that is news."""
        self.failures += 1
        is_news = str(error) != self.unreachable_because
        self.unreachable_because = str(error)
        return is_news

    def reached(self) -> None:
        """The store answered."""
        self.unreachable_because = ""

    def swept(self, report: SweepReport) -> None:
        """A sweep has seen all objects."""
        found, removed = report.orphans, report.removed
        self.sweeps += 1
        self.removed_orphans += removed.objects
        self.removed_manifests += report.past.objects
        self.unknown = report.unknown
        self.orphans = Amount(
            found.objects - removed.objects, found.size_bytes - removed.size_bytes
        )

    def sweep_failed(self) -> None:
        """A sweep did not come to its end."""
        self.failed_sweeps += 1

    def stopped_names(self) -> frozenset[Name]:
        """Partitions of which nothing more is copied in this process."""
        return frozenset((log.topic, log.partition) for log in self._stopped)

    def is_stopped(self, log: Log) -> bool:
        """True when nothing more is copied of it in this process."""
        return log in self._stopped
