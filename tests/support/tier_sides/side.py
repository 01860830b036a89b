"""One of two brokers with a tier: a real Kafka with files in a directory, or ours with a store.

It is started, lives the scenes, and says when what it does on its own is done. What is where is
looked up in its directory and in its store.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from storage.tier.port import ObjectStore
from tests.support.kafka.kafka_oracle import start_kafka
from tests.support.kafka.tiered_kafka import tier_settings
from tests.support.tier.s3_server import S3Server, only_aws
from tests.support.tier_sides.scenes import LOCAL_BYTES, SETTINGS, VALUE_BYTES, Scene, Write
from tests.support.tier_sides.talk import TierTalk, until
from tests.support.worlds.broker_process import start_broker

EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -2, -4, -5, -6
LAST_VERSION = 11
BASE_DIGITS = 20
BOTH = {
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "remote.log.manager.task.interval.ms": "200",
    "remote.fetch.max.wait.ms": "20000",
}
OURS = {
    "horolog.retention.clock": "record",
    "horolog.roll.min.interval.ms": "0",
    "remote.log.storage.system.enable": "true",
}
Sizes = dict[int, int]
"""Sizes of `.log` files in bytes, by base offset."""


class Row(NamedTuple):
    """A record that was written, or the marker of an end."""

    offset: int
    time_ms: int
    """Of a marker, which the broker stamps, when the run began."""


class Lived:
    """One topic on this side."""

    def __init__(self, scene: Scene, now_ms: int) -> None:
        """Nothing is written yet. `now_ms`: when the run began."""
        self.scene = scene
        self.now_ms = now_ms
        self.rows: list[Row] = []
        self.end = self.local_start = 0
        self.sizes: Sizes = {}
        """Of all segments that there ever were, by base offset."""


class Side:
    """A running broker."""

    def __init__(
        self, name: str, bootstrap: str, data_dir: Path, stored: Callable[[str], Sizes]
    ) -> None:
        """`stored`: what its store has of a topic."""
        self.name = name
        self.talk = TierTalk(bootstrap, {})
        self.stored = stored
        self._data_dir = data_dir

    def local(self, topic: str) -> Sizes:
        """Sizes of the segments of a topic in its directory."""
        return _sizes((self._data_dir / f"{topic}-0").glob("*.log"))

    def special(self, topic: str, which: int) -> int:
        """Answer to one of the special times."""
        return int(self.talk.list_offsets({topic: which}, LAST_VERSION)[topic].offset)

    def create(self, topics: Mapping[str, Mapping[str, str | None]]) -> None:
        """Makes topics; waits until they can be used."""
        settings = {name: {**SETTINGS, **more} for name, more in topics.items()}
        assert set(self.talk.create(settings).values()) == {0}
        until(lambda: not any(self._codes(topics)), "topics without leader")

    def _codes(self, topics: Mapping[str, Any]) -> list[int]:
        found = self.talk.list_offsets(dict.fromkeys(topics, -1), 5)
        return [each.error_code for each in found.values()]

    def live(self, lived: Lived, steps: Sequence[Any]) -> None:
        """Writes what the scene has."""
        for number, step in enumerate(steps):
            topic = lived.scene.topic
            if not isinstance(step, Write):
                lived.end = self.talk.end(topic, step)
                lived.rows.append(Row(lived.end - 1, lived.now_ms))
                continue
            value = b"%06d" % number + b"x" * VALUE_BYTES
            end = self.talk.write(topic, step, [(at, b"k", value) for at in step.times])
            lived.rows += [Row(end - len(step.times) + n, at) for n, at in enumerate(step.times)]
            lived.end = end
        lived.sizes |= self.stored(topic) | self.local(topic)

    def settle(self, lived: Lived) -> None:
        """Waits until all closed segments are copied, and local retention has nothing to do."""
        until(lambda: self._is_settled(lived), f"{self.name}: {lived.scene.topic} goes to the tier")
        local = self.local(lived.scene.topic)
        lived.local_start = min(local)
        lived.sizes |= self.stored(lived.scene.topic) | local

    def _is_settled(self, lived: Lived) -> bool:
        topic = lived.scene.topic
        local = self.local(topic)
        if not local or sum(local.values()) - local[min(local)] >= LOCAL_BYTES:
            return False
        return (
            self.special(topic, EARLIEST_LOCAL) == min(local)
            and self.special(topic, LATEST_TIERED) == max(local) - 1
        )

    def change(self, topic: str, settings: Mapping[str, str | None]) -> None:
        """Changes settings of a topic."""
        assert self.talk.alter({topic: dict(settings)}) == {topic: 0}


@contextmanager
def kafka_side(root: Path) -> Iterator[Side]:
    """A real Kafka with LocalTieredStorage."""
    (root / "tier").mkdir(parents=True)
    settings = BOTH | tier_settings(root / "tier") | {"log.segment.delete.delay.ms": "0"}
    with start_kafka(root / "data", settings) as node:

        def stored(topic: str) -> Sizes:
            return _sizes((root / "tier").glob(f"*/{topic}-0-*/*.log"))

        side = Side("kafka", node.bootstrap, root / "data", stored)
        with closing(side.talk):
            yield side
        node.kill()  # asked to end, it takes seconds


@contextmanager
def our_side(root: Path, server: S3Server) -> Iterator[Side]:
    """Our broker with a real object store."""
    settings = BOTH | OURS | {"horolog.tier.url": server.url("as-kafka")}
    store = server.open("as-kafka")
    with only_aws(server.environment):
        node = start_broker(root / "data", settings)
    with node:
        side = Side("ours", node.bootstrap, root / "data", lambda topic: _objects(store, topic))
        with closing(side.talk):
            yield side


def _sizes(files: Iterable[Path]) -> Sizes:
    """Those that are still there: a broker may remove them meanwhile."""
    found = {}
    for each in files:
        with suppress(FileNotFoundError):
            found[int(each.name[:BASE_DIGITS])] = each.stat().st_size
    return found


def _objects(store: ObjectStore, topic: str) -> Sizes:
    found = store.list(f"topics/{topic}/")
    logs = [each for each in found if each.key.endswith(".log")]
    return {int(each.key.rpartition("/")[2][:BASE_DIGITS]): each.size_bytes for each in logs}
