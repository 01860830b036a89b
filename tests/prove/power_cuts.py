"""Real power cuts: ext4 and XFS images are shut down by force under a broker with clients at work.

Producers with acks=all, a compacted topic, transactions with offsets in them and plain commits go
on for a moment; then the power goes: while the broker works, after its clean stop, or in the
recovery that follows a kill. What comes back is compared with what was promised, one by one.

The broker is frozen first. Of a sync that is under way while a file system is shut down by force,
Linux may say that it succeeded, and what it was to keep is lost (6.18: 41 of 400 shut-downs of ext4
and XFS under a process that appends and syncs without a pause). Where the power really goes, there
is nobody who could pass such an answer on.
"""

import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from tests.prove import Outcome, Work, spread
from tests.support.disk.power_disk import MAKE, PoweredDisk, powered_disk, why_not
from tests.support.disk.power_load import KEYED, MOVED, PARTITIONS, PLAIN, Movers, Promises, Writer
from tests.support.disk.power_oracle import broken_promises
from tests.support.ports import free_port
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeFailed, NodeProcess

SLICE_CUTS = 4
CUTS_OF_A_DISK = 10
SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "log.initial.task.delay.ms": "200",
    "log.retention.check.interval.ms": "500",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "horolog.crash.loop.starts": "0",
}
SMALL = {"segment.ms": "200", "horolog.roll.min.interval.ms": "0", "retention.ms": "-1"}
TOPICS = {
    PLAIN: SMALL,
    KEYED: {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"},
    MOVED: SMALL,
}
WAYS = ("at work", "at work", "at work", "after a clean stop", "in recovery")


@dataclass(slots=True)
class Life:
    """One data directory on one disk, from its first start on."""

    disk: PoweredDisk
    seed: int
    promises: Promises = field(default_factory=Promises)
    writers: list[Writer] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    node: NodeProcess | None = None

    def live(self, cuts: int) -> int:
        """Lose the power so many times; how many cuts were judged."""
        address = f"127.0.0.1:{free_port()}"  # the broker comes back there
        try:
            self._start(address)
            make_topics(address)
            self.writers = [
                Writer(address, topic, number, ("none", "lz4")[number])
                for topic in (PLAIN, KEYED)
                for number in range(PARTITIONS)
            ]
            for cut in range(cuts):
                self._cut(address, cut)
                if self.findings:
                    return cut + 1
            return cuts
        finally:
            self._end()

    def _cut(self, address: str, cut: int) -> None:
        dice = random.Random(self.seed * 1000 + cut)
        movers = Movers(address, self.promises, dice.getrandbits(32))
        movers.begin()
        for writer in self.writers:
            writer.go_on()
        time.sleep(dice.uniform(0.3, 1.5))
        way = dice.choice(WAYS)
        if way == "after a clean stop" and self._end_process(clean=True) != 0:
            self.findings.append(f"{self._name(cut, way)}: the clean stop was not clean")
        if way == "in recovery":
            self._end_process()
            with suppress(NodeFailed):  # most often it is not ready by then, and has been killed
                self._start(address, ready_within_seconds=dice.uniform(0.05, 0.6))
        if self.node is not None:
            self.node.freeze()
        self.disk.cut()
        self._end_process()
        self.disk.power_up()
        self._start(address)
        for writer in self.writers:
            writer.rest()
        movers.stop()
        del movers
        Movers(address, self.promises, 0).stop()  # settles what was left open
        lies = broken_promises(address, self.writers, self.promises)
        self.findings += [f"{self._name(cut, way)}: {lie}" for lie in lies]

    def _name(self, cut: int, way: str) -> str:
        return f"{self.disk.kind}, seed {self.seed}, cut {cut} {way}"

    def _start(self, address: str, ready_within_seconds: float = 60) -> None:
        self.node = start_broker(
            self.disk.path / "data",
            SETTINGS,
            listen=address,
            log=self.disk.path.with_name("broker.log"),
            ready_within_seconds=ready_within_seconds,
        )

    def _end_process(self, *, clean: bool = False) -> int:
        node, self.node = self.node, None
        if node is None:
            return 0
        if clean:
            return node.stop()
        node.kill()
        return 0

    def _end(self) -> None:
        for writer in self.writers:
            writer.stop()
            self.findings += [f"{self.disk.kind}, seed {self.seed}: {why}" for why in writer.failed]
        self._end_process()


def make_topics(address: str) -> None:
    """The topics that clients write to."""
    admin = AdminClient({"bootstrap.servers": address})
    made = [NewTopic(name, PARTITIONS, 1, config=config) for name, config in TOPICS.items()]
    for done in admin.create_topics(made).values():
        done.result(30)


class Cuts(NamedTuple):
    """What the cuts of one kind of file system came to."""

    made: int
    lives: int
    findings: tuple[str, ...]


def cuts_of(first_seed: int, wanted: int, kind: str) -> Cuts:
    """So many cuts, a life for each disk, until one finds something."""
    count = lives = 0
    findings: tuple[str, ...] = ()
    while count < wanted and not findings:
        with powered_disk(kind) as disk:
            life = Life(disk, first_seed + lives)
            count += life.live(min(CUTS_OF_A_DISK, wanted - count))
            findings = tuple(life.findings)
        lives += 1
    return Cuts(count, lives, findings)


def prove(work: Work) -> Outcome:
    """So many cuts of each kind of file system (the slice: so many of both together)."""
    wanted = work.points or SLICE_CUTS // len(MAKE)
    missing = {kind: why for kind in MAKE if (why := why_not(kind)) is not None}
    kinds = [kind for kind in MAKE if kind not in missing]
    if not kinds:
        return Outcome(0, "power cuts", skipped="; ".join(missing.values()))
    results = dict(
        zip(kinds, spread(work, partial(cuts_of, work.seed, wanted), kinds), strict=True)
    )
    told = {**missing, **{kind: str(result.made) for kind, result in results.items()}}
    return Outcome(
        sum(result.made for result in results.values()),
        "power cuts",
        f"{work.seed}-{work.seed + max(result.lives for result in results.values()) - 1}",
        tuple(finding for result in results.values() for finding in result.findings),
        note=", ".join(f"{kind}: {told[kind]}" for kind in MAKE),
    )
