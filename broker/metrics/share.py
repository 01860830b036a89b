"""Metrics of share groups: sessions, records in flight, and what became of them; in Kafka's names
on /metrics/kafka.
"""

from collections.abc import Iterable
from typing import NamedTuple

from broker.groups.redrive.redrive import Redrive
from broker.metrics.declare import Metric, Sample, Spread, counter, gauge, one
from broker.share.ages import age_of, unfinished
from broker.share.letters.returned import PASSED_OVER
from broker.share.share_counts import LATE_SECONDS
from broker.share.share_reads import ShareReads
from broker.share.state.coordinator import ShareCoordinator
from broker.share.states import LIMIT, REJECTED
from broker.topics.topic_catalog import TopicCatalog
from storage.env import Clock

MAX_EXACT = 1000
"""Share partitions beyond which ages are left out: each costs a look into its log."""
KINDS = ("gap", "accept", "release", "reject", "renew")
"""Types of acknowledgements, by their numbers on the wire."""


class ShareView(NamedTuple):
    """Services that metrics of share groups read."""

    share_reads: ShareReads
    share_states: ShareCoordinator
    topics: TopicCatalog
    clock: Clock
    redrive: Redrive


def _acknowledged(view: ShareView) -> Iterable[Sample]:
    counts = view.share_reads.counts.acknowledged
    return [((kind,), float(counts[number])) for number, kind in enumerate(KINDS)]


def _lettered(view: ShareView) -> Iterable[Sample]:
    written = view.share_reads.letters.written
    return [((reason,), float(written[reason])) for reason in (REJECTED, LIMIT)]


def _oldest(view: ShareView) -> Iterable[Sample]:
    """By group, topic, partition and clock; none when there are too many."""
    states, reads = view.share_states.states, view.share_reads
    if len(states) > MAX_EXACT:
        return
    now_ms = view.clock.now_ms()
    for found in unfinished(states, reads.partitions, view.topics.image):
        age, labels = (
            age_of(found, now_ms),
            (found.group, found.log.topic, str(found.log.partition)),
        )
        if age is not None:
            yield (*labels, "arrival"), age.arrival
            if age.record is not None:
                yield (*labels, "record"), age.record


def _in_kafkas_words(view: ShareView) -> Iterable[Sample]:
    return [((kind.capitalize(),), number) for (kind,), number in _acknowledged(view)]


SHARE_METRICS: tuple[Metric[ShareView], ...] = (
    gauge(
        "horolog_share_sessions",
        "Sessions of members of share groups.",
        (),
        one(lambda view: len(view.share_reads.sessions)),
    ),
    gauge(
        "horolog_share_partitions",
        "Share partitions in memory: those that members read.",
        (),
        one(lambda view: view.share_reads.partitions.count),
    ),
    gauge(
        "horolog_share_records_in_flight",
        "Records from the first unfinished one of each share partition to the last given out.",
        (),
        one(lambda view: view.share_reads.partitions.in_flight),
    ),
    counter(
        "horolog_share_records_delivered",
        "Records that members of share groups acquired.",
        (),
        one(lambda view: view.share_reads.counts.delivered),
    ),
    counter(
        "horolog_share_records_acknowledged",
        "Records that members of share groups acknowledged, by the type of acknowledgement.",
        ("type",),
        _acknowledged,
    ),
    counter(
        "horolog_share_locks_ended",
        "Acquisitions that ended because their time was over.",
        (),
        one(lambda view: view.share_reads.counts.locks_ended),
    ),
    counter(
        "horolog_share_sessions_lost",
        "Sessions of share groups that ended with their connection.",
        (),
        one(lambda view: view.share_reads.counts.sessions_lost),
    ),
    gauge(
        "horolog_share_waiting",
        "Records of share groups with a delay that are not due yet, as far as they were read.",
        (),
        one(lambda view: view.share_reads.counts.waiting),
    ),
    counter(
        "horolog_share_lost_waiting",
        "Records that left the log before they were due to a share group.",
        (),
        one(lambda view: view.share_reads.counts.lost_waiting),
    ),
    counter(
        "horolog_share_delays_bounded",
        "Records that asked for a later time than horolog.share.delay.max.ms allows for.",
        (),
        one(lambda view: view.share_reads.counts.delays_bounded),
    ),
    counter(
        "horolog_share_deliver_at_unusable",
        "Headers horolog-deliver-at that say no time: their records do not wait for one.",
        (),
        one(lambda view: view.share_reads.counts.delays_unusable),
    ),
    gauge(
        "horolog_share_oldest_seconds",
        "Age of the oldest record that a share group has not finished, by either clock; 0 when all "
        "is finished.",
        ("group", "topic", "partition", "clock"),
        _oldest,
    ),
    counter(
        "horolog_share_dead_letters",
        "Dead letters of records that share groups gave up.",
        ("reason",),
        lambda view: [
            ((reason,), float(view.share_reads.letters.written[reason]))
            for reason in (REJECTED, LIMIT)
        ],
    ),
    counter(
        "horolog_share_dead_letters_failed",
        "Attempts to write dead letters that failed; their records stay until one succeeds.",
        (),
        one(lambda view: view.share_reads.letters.failures),
    ),
    counter(
        "horolog_share_letters_redriven",
        "Dead letters that a redrive has sent back to the topics of their origin.",
        (),
        one(lambda view: view.redrive.sent),
    ),
    counter(
        "horolog_share_letters_passed_over",
        "Records in topics of dead letters that a redrive has not sent back, by reason.",
        ("reason",),
        lambda view: [
            ((reason,), float(view.redrive.passed_over[reason])) for reason in PASSED_OVER
        ],
    ),
    counter(
        "horolog_share_redrive_stops",
        "Redrives that ended with an error; the next one goes on there.",
        (),
        one(lambda view: view.redrive.stops),
    ),
)

SHARE_SPREADS: tuple[Spread[ShareView], ...] = (
    Spread(
        "horolog_share_lateness_seconds",
        "Time from when a record was due to when a member of a group with a delay got it: of each "
        "acquisition the record that was due first.",
        (),
        LATE_SECONDS,
        lambda view: [((), view.share_reads.counts.late)],
    ),
)

KAFKA_SHARE_METRICS: tuple[Metric[ShareView], ...] = (
    counter(
        "kafka_server_sharegroupmetrics_recordacknowledgements",
        "Records that members of share groups acknowledged.",
        ("acktype",),
        _in_kafkas_words,
    ),
    gauge(
        "kafka_server_sharesessioncache_sharesessionscount",
        "Sessions of members of share groups.",
        (),
        one(lambda view: len(view.share_reads.sessions)),
    ),
    gauge(
        "kafka_server_sharesessioncache_sharepartitionscount",
        "Partitions in all of these sessions.",
        (),
        one(lambda view: view.share_reads.sessions.followed),
    ),
    counter(
        "kafka_server_sharesessioncache_sharesessionevictions",
        "Sessions that ended with their connection.",
        (),
        one(lambda view: view.share_reads.counts.sessions_lost),
    ),
)
