"""The life of a real broker whose tier is behind a proxy that fails calls, with real clients.

Topics are made, written, copied, leave the disk, are read from the store, compacted there, cut and
deleted. Whatever the proxy does meanwhile, and however often the broker is killed: in the end all
that was acknowledged is there once, and the store has what manifests name and nothing else.
"""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from storage.tier.port import ObjectStore
from tests.support.clients.scraped import metric_of
from tests.support.tier.fault_proxy import FaultProxy, fault_proxy
from tests.support.tier.leftovers import leftovers, missing, named_bytes
from tests.support.tier.s3_server import S3Server, only_aws
from tests.support.tier.story_clients import T0, StoryClients, Written, until
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

EARLIEST, EARLIEST_LOCAL, MAX_TIMESTAMP = -2, -4, -3
MIB = 1024 * 1024
VALUE_BYTES = 32 * 1024
SEGMENT = MIB // VALUE_BYTES
"""Records of a small segment, about."""
SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "50",
    "remote.fetch.max.wait.ms": "300",
    "log.retention.check.interval.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "horolog.tier.compacted": "true",
    "log.initial.task.delay.ms": "100",
    "horolog.tier.sweep.interval.ms": "300",
    "horolog.tier.orphan.min.age.ms": "0",
}
TOPIC = {
    "remote.storage.enable": "true",
    "segment.bytes": str(MIB),
    "local.retention.bytes": "1",
    "retention.ms": "-1",
    "retention.bytes": str(1 << 40),
    "file.delete.delay.ms": "0",
}
BIG = {**TOPIC, "segment.bytes": str(9 * MIB)}
"""Its segments go up in parts."""
DIRTY = "min.cleanable.dirty.ratio"
KEYED = {**TOPIC, "cleanup.policy": "compact", DIRTY: "1", "delete.retention.ms": "86400000"}
"""It is compacted once all of it but the active segment is only in the store."""
KEYS = SEGMENT // 2
COMPACTED = "compacted"
"""In the names of steps of that topic, from its compaction on."""


class FaultedBroker:
    """A broker that may be killed and started again at its address, from any thread."""

    def __init__(self, server: S3Server, proxy: FaultProxy, data_dir: Path) -> None:
        """Starts it."""
        self.proxy = proxy
        self.data_dir = data_dir
        self.prefix = f"{data_dir.parent.name}-{data_dir.name}"
        self.store: ObjectStore = server.open(self.prefix)
        """Without faults."""
        self._server = server
        self._gate = threading.Lock()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.starts = 0
        self.node = self._start()

    def _start(self) -> NodeProcess:
        self.starts += 1
        settings = {**SETTINGS, "horolog.tier.url": self._server.url(self.prefix)}
        endpoint = {"AWS_ENDPOINT_URL": f"http://{self.proxy.address}"}
        with only_aws({**self._server.environment, **endpoint}):
            return start_broker(self.data_dir, settings, listen=self.address)

    def kill_and_start(self) -> None:
        """kill -9, and a start on what it left."""
        with self._gate:
            self.node.kill()
            self.node = self._start()

    @property
    def failures(self) -> float:
        """Failures that the broker has counted since its start."""
        return metric_of(self.node, "horolog_tier_failures_total")


@contextmanager
def faulted_broker(server: S3Server, data_dir: Path) -> Iterator[FaultedBroker]:
    """One that runs, behind a proxy that does nothing yet."""
    with fault_proxy(server.address) as proxy:
        broker = FaultedBroker(server, proxy, data_dir)
        try:
            yield broker
        finally:
            proxy.heal()
            broker.node.kill()


class TierStory:
    """One life."""

    def __init__(self, broker: FaultedBroker) -> None:
        """Nothing has happened."""
        self._broker = broker
        self._clients = StoryClients(broker.address, VALUE_BYTES)
        self._written = {"t": 0, "big": 0, "gone": 0, "keyed": 0}

    def live(self) -> None:
        """All of it. AssertionError for a broken promise."""
        topics = {"t": TOPIC, "big": BIG, "gone": TOPIC, "keyed": KEYED}
        for topic, config in topics.items():
            self._clients.make_topic(topic, config)
        self._write(
            {"t": 4 * SEGMENT, "big": 10 * SEGMENT, "gone": 2 * SEGMENT, "keyed": 4 * SEGMENT}
        )
        away = {"t": 3 * SEGMENT - 4, "big": 1, "gone": 1, "keyed": 3 * SEGMENT - 4}
        for topic, below in away.items():
            self._wait_until_away(topic, below)
        self._check(0)
        self._compact()
        cut = 2 * SEGMENT + 3
        self._clients.delete_records("t", cut)
        self._clients.delete_topic("gone")
        self._write({"t": SEGMENT})
        self._wait_until_clean()
        self._check_times(cut)
        self._check(cut)

    def _compact(self) -> None:
        """Of each key all but the last record leave the store."""
        self._broker.proxy.apart = {"keyed": COMPACTED}
        self._clients.alter_topic("keyed", DIRTY, "0.01")
        most = (KEYS + SEGMENT // 2) * VALUE_BYTES
        until(
            lambda: 0 < named_bytes(self._broker.store, "keyed") < most,
            lambda: "keyed: it is not compacted in the store",
        )
        self._clients.check([self._all_of("keyed")])

    def _check_times(self, cut: int) -> None:
        """Answers by time are the records', wherever those are."""
        last = self._written["t"] - 1
        for number in (0, cut - 1, cut, cut + SEGMENT, last):
            self._check_time(T0 + number, max(number, cut))
        self._check_time(MAX_TIMESTAMP, last)
        self._check_time(EARLIEST, cut)

    def _check_time(self, timestamp: int, wanted: int) -> None:
        """The answer, once there is one."""

        def holds() -> bool:
            found = self._clients.offset_of("t", timestamp)
            assert found in {-1, wanted}, f"t: {found} is the offset of {timestamp}, not {wanted}"
            return found == wanted

        until(holds, lambda: f"t: a search for {timestamp} has no answer")

    def _write(self, counts: Mapping[str, int]) -> None:
        new = []
        for topic, count in counts.items():
            before = self._all_of(topic)
            self._written[topic] += count
            new.append(before._replace(first=before.end, end=before.end + count))
        self._clients.write(new)

    def _check(self, cut: int) -> None:
        """All that is there; `t` begins at `cut`."""
        self._clients.check([self._all_of("t", cut), self._all_of("big"), self._all_of("keyed")])

    def _all_of(self, topic: str, first: int = 0) -> Written:
        return Written(topic, first, self._written[topic], KEYS if topic == "keyed" else 0)

    def _wait_until_away(self, topic: str, below: int) -> None:
        until(
            lambda: self._clients.offset_of(topic, EARLIEST_LOCAL) >= below,
            lambda: f"{topic}: records below {below} do not leave the disk",
        )

    def _wait_until_clean(self) -> None:
        store, clients = self._broker.store, self._clients
        self._wait_until_away("t", clients.offset_of("t", EARLIEST))
        until(
            lambda: not leftovers(store, ["gone"]),
            lambda: f"it stays in the store: {sorted(leftovers(store, ['gone']))}",
        )
        assert not missing(store), f"it is not in the store: {sorted(missing(store))}"
