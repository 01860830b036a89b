"""The sweep: objects of the tier that nothing names are found, shown, and removed a round later."""

from typing import NamedTuple

from broker.guards.clock_guard import ClockWatch
from broker.runtime.event_log import event
from broker.tier.standing import TierStanding
from broker.tier.tier import Tier
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from storage.errors import StorageError
from storage.tier.orphans import Amount, SweepOrder, SweepReport, SweepStopped

LEAST_REST = 0.5
"""Part of the interval that an orphan is known at least before it is removed."""


class SweepParts(NamedTuple):
    """The services that a sweep works with."""

    topics: TopicCatalog
    config: ConfigStore
    clock_watch: ClockWatch
    tier: Tier
    standing: TierStanding
    is_shared: bool = False
    """True in a fleet."""


class Sweep:
    """Rounds of it. Used from the event loop."""

    def __init__(self, parts: SweepParts) -> None:
        """Nothing was looked at."""
        self._parts = parts

    async def run(self) -> None:
        """One round, unless the clock is unverified: objects go by their age."""
        parts = self._parts
        if parts.clock_watch.look() or not await parts.standing.may_copy():
            return
        try:
            report = await parts.tier.copies.run(parts.tier.orphans.round, self._order())
        except SweepStopped:
            return
        except StorageError as error:
            parts.tier.tally.sweep_failed()
            event("tier_sweep_failed", "warning", error=error)
            return
        self._tell(report)
        await parts.topics.forget_deleted(report.forgotten)

    def _order(self) -> SweepOrder:
        parts, settings = self._parts, self._parts.config.broker_config
        past_ms = settings.horolog_tier_manifest_retention_ms
        live = frozenset(topic.topic_id for topic in parts.topics.image.topics.values())
        return SweepOrder(
            live,
            parts.topics.deleted - live,
            parts.tier.trash.names(),
            parts.tier.tally.stopped_names(),
            settings.horolog_tier_orphan_min_age_ms,
            settings.horolog_tier_sweep_interval_ms / 1000 * LEAST_REST,
            None if past_ms < 0 else past_ms,
            is_shared=parts.is_shared,
        )

    def _tell(self, report: SweepReport) -> None:
        self._parts.tier.tally.swept(report)
        if report.orphans.objects:
            event("tier_orphans_found", **_fields(report.orphans))
        if report.removed.objects:
            event("tier_orphans_removed", **_fields(report.removed))
        if report.unknown.objects:
            event("tier_topics_unknown", "warning", **_fields(report.unknown))
        if report.unreadable:
            event("tier_partitions_not_swept", "warning", examples=list(report.unreadable))


def _fields(amount: Amount) -> dict[str, object]:
    examples = list(amount.examples)
    return {"objects": amount.objects, "bytes": amount.size_bytes, "examples": examples}
