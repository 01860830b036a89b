"""Gauges of transactions: the number of open ones, and how long the oldest has stopped readers.

A partition has a series while a transaction is open in it; of more than `MAX_EXACT` those that are
stopped longest are shown.
"""

from collections.abc import Iterable
from heapq import nlargest
from typing import NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.transactions.coordinator import TransactionCoordinator
from storage.env import Clock


class TransactionView(NamedTuple):
    """Services that metrics of transactions read."""

    transactions: TransactionCoordinator
    groups: GroupCoordinator
    clock: Clock


MAX_EXACT = 1000
ENDS = ("committed", "aborted", "timed_out", "fenced", "orphaned")


def _ages(view: TransactionView) -> Iterable[Sample]:
    now_ms = view.clock.now_ms()
    ages: dict[tuple[str, ...], float] = {}
    for owner in list(view.transactions.steps.open.values()):
        facts = owner.facts
        age = max(now_ms - facts.started_ms, 0) / 1000
        for topic, index in facts.partitions:
            labels = topic, str(index)
            ages[labels] = max(age, ages.get(labels, 0.0))
    return nlargest(MAX_EXACT, ages.items(), key=lambda each: each[1])


def _ended(view: TransactionView) -> Iterable[Sample]:
    ended = dict(view.transactions.steps.ended)
    return [((how,), float(ended.get(how, 0))) for how in ENDS]


TRANSACTION_METRICS: tuple[Metric[TransactionView], ...] = (
    gauge(
        "horolog_transactional_ids",
        "Transactional ids that are remembered.",
        (),
        one(lambda view: len(view.transactions.ids)),
    ),
    gauge(
        "horolog_transactions_open",
        "Transactions that have not ended.",
        (),
        one(lambda view: len(view.transactions.steps.open)),
    ),
    gauge(
        "horolog_transaction_oldest_open_seconds",
        "Time for which the oldest open transaction has stopped readers of committed records.",
        ("topic", "partition"),
        _ages,
    ),
    counter(
        "horolog_transactions_ended",
        "Transactions that ended: committed or aborted by their producer, aborted by their "
        "time-out, because another producer took over, or because no id owned them.",
        ("how",),
        _ended,
    ),
    gauge(
        "horolog_transaction_pending_offsets",
        "Offsets of groups that wait for the end of their transaction.",
        (),
        one(lambda view: len(view.groups.pending)),
    ),
    counter(
        "horolog_transaction_records_unreadable",
        "Records of transactions that could not be read back at the start.",
        (),
        one(lambda view: view.transactions.loading.unreadable_records),
    ),
)
