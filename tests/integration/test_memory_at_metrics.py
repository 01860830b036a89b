"""What clients make a real broker remember is in the account of memory, by class."""

import re
import time
import urllib.request
from pathlib import Path

from broker.runtime.memory_account import MemoryClass
from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.records.builder import build_batch
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.inflating import NOW_MS, make_topic, produce
from tests.support.worlds.node_process import NodeProcess

PRODUCERS = 50
SHARED_SECONDS = 1.2  # scrapes are shared for a second
NAME = "x" * 10_000


def used(broker: NodeProcess) -> dict[str, float]:
    """By class, as the scrape tells it."""
    with urllib.request.urlopen(f"http://{broker.facts['http']}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    found = re.findall(r'^horolog_memory_used_bytes\{class="(\w+)"\} (\S+)', text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def test_producers_and_fetch_sessions_are_counted(tmp_path: Path) -> None:
    with start_broker(tmp_path / "data") as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        client = WireClient(host, int(port))
        make_topic(client, "t", 1)
        before = used(broker)
        assert set(before) == {kind.value for kind in MemoryClass}
        for producer in range(PRODUCERS):
            batch = build_batch(
                [(NOW_MS, b"k", b"v")], producer_id=producer, producer_epoch=0, base_sequence=0
            )
            client.call(produce("t", {0: bytes(batch)}), 8)
        asked = [
            FetchTopic(topic=name, partitions=[FetchPartition(partition=0, fetch_offset=0)])
            for name in ("t", NAME)
        ]
        request = FetchRequest(replica_id=-1, max_wait_ms=0, session_epoch=0, topics=asked)
        assert client.call(request, 11).session_id
        time.sleep(SHARED_SECONDS)
        after = used(broker)
        assert after["producers"] - before["producers"] >= PRODUCERS * 100
        assert after["sessions"] - before["sessions"] >= len(NAME)
        client.socket.close()
