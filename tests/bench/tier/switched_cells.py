"""What copying to a tier takes from a producer at full speed, turned on and off many times.

One broker and one producer, which fills the machine; the closed segments of another topic are
copied or are not, by `remote.log.copy.disable`, in turns (on off, off on, …). The rate of a machine
that others share wanders by more within a minute than copying can take from it, and by less within
a few seconds. The store is on this machine, which it would not be: it is the one that needs the
least for a byte (versitygw; SeaweedFS needs three times as much), and takes what CPU others leave.
What the producer writes leaves the disk soon, so that the disk's speed is not what is measured.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from statistics import fmean, stdev
from typing import Final, NamedTuple

from tests.bench.cell import TINY, Cell, Figure, Scale
from tests.bench.fetch_cells import RECORD_BYTES, RECORDS_A_BATCH
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer
from tests.bench.pump import Pumped, for_seconds, pump
from tests.bench.tier.nodes import Store, TieredNode, stand_back, tiered
from tests.bench.topics import topic
from tests.bench.wire import Wire
from tests.support.tier.s3_server import seaweedfs
from tests.support.tier.versity import versitygw

COPIED_A_SECOND: Final = 25_000_000
BUSY: Final = {
    "segment.bytes": str(64 << 20),
    "retention.bytes": str(256 << 20),
    "file.delete.delay.ms": "0",
}
DEPTH: Final = 5
WARM_TURNS: Final = 4
BATCH_BYTES: Final = RECORD_BYTES * RECORDS_A_BATCH


class Turn(NamedTuple):
    """One turn of the producer, and the broker's CPU in it."""

    megabytes: float
    seconds: float
    broker_cpu: float

    @property
    def rate(self) -> float:
        """MB a second."""
        return self.megabytes / self.seconds


class Lengths(NamedTuple):
    """How many pairs of turns, and their seconds."""

    pairs: int
    turn: float
    settling: float

    @property
    def copying(self) -> float:
        """Seconds in which is copied."""
        return self.pairs * (self.turn + self.settling)


class Copied(NamedTuple):
    """Segments that are copied; lengths that fit them, for each of the scale's seconds."""

    segment_bytes: int
    pairs: int
    turn: float
    settling: float
    """Longer than a segment takes, since one that has begun is copied to its end."""

    def lengths(self, scale: Scale) -> Lengths:
        """Lengths of a run."""
        pairs = max(2, round(self.pairs * scale.seconds))
        return Lengths(pairs, self.turn * scale.seconds, self.settling * scale.seconds)


SMALL: Final = Copied(8 << 20, pairs=12, turn=0.16, settling=0.08)
LARGER: Final = Copied(64 << 20, pairs=5, turn=0.4, settling=0.64)


class Switch:
    """A topic that waits to be copied, and one that a producer fills."""

    def __init__(self, node: TieredNode, waiting: str, busy: str, wire: Wire) -> None:
        self._node, self._waiting, self._busy, self._wire = node, waiting, busy, wire
        self._request = produce(busy, batch_of(RECORD_BYTES, RECORDS_A_BATCH), acks=1)

    def produce(self, seconds: float) -> Pumped:
        """The producer alone."""
        return pump(self._wire, self._busy, for_seconds(seconds, self._request), DEPTH)

    def turn(self, lengths: Lengths, *, is_copied: bool) -> Turn:
        """Copying on or off, and once that is so, a turn that is measured."""
        off = "false" if is_copied else "true"
        self._node.change(self._waiting, {"remote.log.copy.disable": off})
        self.produce(lengths.settling)
        before = self._node.cpu()["broker"]
        done = self.produce(lengths.turn)
        spent = self._node.cpu()["broker"] - before
        return Turn(len(done.latencies_ns) * BATCH_BYTES / 1e6, done.seconds, spent)


def measure_switched(copied: Copied, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Rates with and without; how much less the one with copying is, and the standard error."""
    lengths = copied.lengths(scale)
    bound = {"remote.log.manager.copy.max.bytes.per.second": str(COPIED_A_SECOND)}
    with (
        tiered(peer, bound, store=_store(scale)) as node,
        _waiting(node, copied.segment_bytes, lengths) as waiting,
    ):
        if node.server is not None:
            stand_back(node.server)
        with topic(node.bootstrap, "busy", config=BUSY) as busy, Wire(node.bootstrap) as wire:
            switch = Switch(node, waiting, busy, wire)
            switch.produce(lengths.turn * WARM_TURNS)
            turns = [_pair(switch, lengths, number) for number in range(lengths.pairs)]
        rate = node.stored_bytes(waiting) / 1e6 / lengths.copying
    return {"copied": rate, **_figures(turns)}


def _store(scale: Scale) -> Store:
    """The lightest one; where nothing is measured, the one that need not be built."""
    return seaweedfs if scale == TINY else versitygw


def _pair(switch: Switch, lengths: Lengths, number: int) -> tuple[Turn, Turn]:
    """With and without."""
    if number % 2:
        without = switch.turn(lengths, is_copied=False)
        return switch.turn(lengths, is_copied=True), without
    return switch.turn(lengths, is_copied=True), switch.turn(lengths, is_copied=False)


@contextmanager
def _waiting(node: TieredNode, segment_bytes: int, lengths: Lengths) -> Iterator[str]:
    """A topic with closed segments for more than the time that is measured."""
    config = {
        "segment.bytes": str(segment_bytes),
        "retention.ms": "-1",
        "remote.storage.enable": "true",
        "remote.log.copy.disable": "true",
    }
    with topic(node.bootstrap, "waiting", config=config) as name:
        wanted = COPIED_A_SECOND * lengths.copying * 1.2 + 2 * segment_bytes
        request = produce(name, batch_of(RECORD_BYTES, RECORDS_A_BATCH), acks=1)
        with Wire(node.bootstrap) as wire:
            pump(wire, name, repeat(request, int(wanted // BATCH_BYTES)), DEPTH)
        yield name


def _figures(pairs: list[tuple[Turn, Turn]]) -> dict[str, float]:
    found = {}
    for kind, turns in zip(("with", "without"), zip(*pairs, strict=True), strict=True):
        megabytes = sum(each.megabytes for each in turns)
        found[f"rate {kind}"] = megabytes / sum(each.seconds for each in turns)
        found[f"broker CPU {kind}"] = sum(each.broker_cpu for each in turns) * 1000 / megabytes
    lost = [(1 - one.rate / other.rate) * 100 for one, other in pairs]
    error = stdev(lost) / len(lost) ** 0.5
    return {**found, "lost": max(0.01, fmean(lost)), "error": error}


FIGURES = (
    Figure("lost", "%", "lower", under=5),
    Figure("error", "%", "lower"),
    Figure("rate with", "MB/s", "higher"),
    Figure("rate without", "MB/s", "higher"),
    Figure("broker CPU with", "ms/MB", "lower"),
    Figure("broker CPU without", "ms/MB", "lower"),
    Figure("copied", "MB/s", "higher"),
)
CELLS = tuple(
    Cell(name, FIGURES, partial(measure_switched, copied), starts_nodes=True, fills_memory=True)
    for name, copied in (
        ("tier-loss-producer", LARGER),
        ("tier-loss-producer-small-segments", SMALL),
    )
)
