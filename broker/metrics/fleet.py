"""Metrics of a node of a fleet; there are none of a broker that stands alone."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from broker.fleet.fleet_commit import FleetCommit
from broker.fleet.tally import FleetTally
from broker.metrics.declare import Durations, Metric, Sample, counter, gauge, labelled
from broker.runtime.probes import Histogram
from broker.topics.topic_catalog import TopicCatalog


class FleetFigures(Protocol):
    """A node's part of its fleet, as metrics read it."""

    @property
    def tally(self) -> FleetTally:
        """Counts."""

    @property
    def commit(self) -> FleetCommit:
        """Writes that wait."""

    @property
    def owned_shards(self) -> int:
        """Shards of which this node leads the partitions."""

    @property
    def silent_seconds(self) -> float:
        """Time since a renewal of its lease was answered."""

    @property
    def row_bytes(self) -> int:
        """Committed bytes that the database alone has."""


class FleetView(NamedTuple):
    """Services that metrics of the fleet read."""

    fleet: FleetFigures | None
    topics: TopicCatalog


def _one(read: Callable[[FleetFigures], float]) -> Callable[[FleetView], Iterable[Sample]]:
    return lambda view: () if view.fleet is None else [((), float(read(view.fleet)))]


def _led(view: FleetView) -> Iterable[Sample]:
    if view.fleet is None:
        return ()
    return [((), float(sum(1 for _ in view.topics.image.led_here())))]


def _clock_ahead(view: FleetView) -> Iterable[Sample]:
    known = None if view.fleet is None else view.fleet.tally.clock_gap.known
    return () if known is None else [((), known.ahead_ms / 1000)]


def _answers(view: FleetView) -> Iterable[Sample]:
    return () if view.fleet is None else labelled(view.fleet.tally.answers)


def _bytes(view: FleetView) -> Iterable[Sample]:
    if view.fleet is None:
        return ()
    tally = view.fleet.tally
    return [(("catalog",), float(tally.inline_bytes)), (("store",), float(tally.object_bytes))]


def _commits(view: FleetView) -> Iterable[tuple[tuple[str, ...], Histogram]]:
    return () if view.fleet is None else [((), view.fleet.tally.commits)]


FLEET_METRICS: Final[tuple[Metric[FleetView], ...]] = (
    gauge(
        "horolog_fleet_owned_shards",
        "Shards of which this node leads the partitions.",
        (),
        _one(lambda fleet: fleet.owned_shards),
    ),
    gauge(
        "horolog_fleet_clock_ahead_seconds",
        "Time by which this node's clock is ahead of the catalog's; negative: behind.",
        (),
        _clock_ahead,
    ),
    gauge("horolog_fleet_led_partitions", "Partitions that this node leads.", (), _led),
    gauge(
        "horolog_fleet_silent_seconds",
        "Time since a renewal of this node's lease was answered.",
        (),
        _one(lambda fleet: fleet.silent_seconds),
    ),
    gauge(
        "horolog_fleet_waiting_writes",
        "Writes that wait for a commit.",
        (),
        _one(lambda fleet: fleet.commit.waiting_writes),
    ),
    counter(
        "horolog_fleet_lives",
        "Incarnations of this node that began; more than one: it was fenced, or refused.",
        (),
        _one(lambda fleet: fleet.tally.lives),
    ),
    counter(
        "horolog_fleet_commit_answers",
        "Answers of the catalog to commits and checkpoints.",
        ("answer",),
        _answers,
    ),
    counter(
        "horolog_fleet_committed_bytes",
        "Bytes of commits and checkpoints, by where they went.",
        ("place",),
        _bytes,
    ),
    gauge(
        "horolog_fleet_row_bytes",
        "Bytes of committed records of this node that are in the database and not in the store.",
        (),
        _one(lambda fleet: fleet.row_bytes),
    ),
    counter(
        "horolog_fleet_checkpoints",
        "Objects that took the place of small commits.",
        (),
        _one(lambda fleet: fleet.tally.checkpoints),
    ),
    counter(
        "horolog_fleet_loaded_partitions",
        "Partitions that were loaded to be led here.",
        (),
        _one(lambda fleet: fleet.tally.loaded_partitions),
    ),
    counter(
        "horolog_fleet_given_shards",
        "Shards that were handed to other nodes.",
        (),
        _one(lambda fleet: fleet.tally.given_shards),
    ),
    counter(
        "horolog_fleet_shards_moved_for_load",
        "Shards that were handed to a node that took less from producers.",
        (),
        _one(lambda fleet: fleet.tally.moved_for_load),
    ),
    counter(
        "horolog_fleet_removed_objects",
        "Objects that no row named any more, and that this node removed.",
        (),
        _one(lambda fleet: fleet.tally.removed_objects),
    ),
)
FLEET_DURATIONS: Final[tuple[Durations[FleetView], ...]] = (
    Durations(
        "horolog_fleet_commit_seconds",
        "From the begin of a commit to the catalog's answer, the put of its object with it.",
        (),
        _commits,
    ),
)
