"""A broker process under attack, and everything by which one sees that it took no harm.

Owns the process. Harm is: the process ends, a bystander waits, an unexpected error stands in the
log, or is counted. Memory is read from the kernel, counters from `/metrics`.
"""

import re
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from protocol.apis import create_topics, fetch, produce
from protocol.apis.metadata import MetadataRequest
from protocol.records.builder import build_batch
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import start_broker

MIB = 1 << 20
BYSTANDER_SECONDS = 5.0
SHARED_SECONDS = 1.1
SURPRISES = ("Traceback", "request_failed", "task_failed")
"""Words that the log of an unharmed broker does not have."""


class WatchedBroker:
    """A running broker; a context manager."""

    def __init__(
        self,
        data_dir: Path,
        settings: Mapping[str, str] | None = None,
        log: Path | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self._scraped_at = 0.0
        self.process = start_broker(data_dir, settings, log=log, options=options)
        self.host, port = self.process.bootstrap.rsplit(":", 1)
        self.port = int(port)

    def client(self) -> WireClient:
        """A new connection."""
        return WireClient(self.host, self.port)

    def make_topic(self, name: str, partitions: int = 1, **configs: str) -> UUID:
        """A topic with settings (underscores for dots); its id."""
        topic = create_topics.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                create_topics.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        with self.client() as client:
            answer = client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
        assert answer.topics[0].error_code == 0, answer
        topic_id: UUID = answer.topics[0].topic_id
        return topic_id

    # -- what is seen

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that carry these labels; 0 when there is none."""
        return sum_of(self.metrics(), name, **labels)

    def metrics(self) -> str:
        """The whole scrape, as the broker is now: one is shared for a second."""
        time.sleep(max(0.0, self._scraped_at + SHARED_SECONDS - time.monotonic()))
        with urllib.request.urlopen(f"http://{self.process.facts['http']}/metrics") as answer:
            text: str = answer.read().decode()
        self._scraped_at = time.monotonic()
        return text

    def status(self, key: str) -> int:
        """A number of /proc/PID/status: VmRSS and VmHWM in bytes, Threads as it is."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"^{key}:\s+(\d+)( kB)?", text, re.MULTILINE)
        assert found, key
        return int(found[1]) * (1024 if found[2] else 1)

    def forget_peak(self) -> None:
        """VmHWM starts again from the present size."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    @property
    def log_text(self) -> str:
        """Everything that the broker has logged."""
        return self.process.log.read_text()

    def wait_for(self, what: str, seconds: float = 20.0, **labels: str) -> None:
        """Until a metric is above zero; fails when it stays there."""
        end = time.monotonic() + seconds
        while not self.metric(what, **labels):
            assert time.monotonic() < end, f"{what} {labels} stayed 0"
            time.sleep(0.05)

    def check_unharmed(self) -> None:
        """Alive, answering, and surprised by nothing."""
        assert self.process.running
        began = time.monotonic()
        with self.client() as client:
            assert client.call(MetadataRequest(topics=[]), 9).brokers
        assert time.monotonic() - began < BYSTANDER_SECONDS
        assert not [sign for sign in SURPRISES if sign in self.log_text], self.log_text[-4000:]

    def check_counters(self) -> None:
        """No surprise was counted since the start. A scrape takes a second."""
        counted = self.metrics()
        for name in ("horolog_request_failures_total", "horolog_task_failures_total"):
            assert sum_of(counted, name) == 0, self.log_text[-4000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.__exit__(*error)  # type: ignore[arg-type]


def sum_of(scraped: str, name: str, **labels: str) -> float:
    """The sum of a metric's samples that carry these labels; 0 when there is none."""
    total = 0.0
    for line in scraped.splitlines():
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if match and match[1] == name:
            found = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
            if labels.items() <= found.items():
                total += float(match[3])
    return total


def produce_to(
    client: WireClient, records: Any, *, topic: str = "t", partition: int = 0, **fields: Any
) -> produce.PartitionProduceResponse:
    """The answer to one batch; `version` and the request's fields by name."""
    version = int(fields.pop("version", 9))
    data = produce.PartitionProduceData(index=partition, records=records)
    topics = [produce.TopicProduceData(name=topic, partition_data=[data])]
    request = produce.ProduceRequest(
        **{"acks": -1, "timeout_ms": 5000, "topic_data": topics, **fields}
    )
    answer: produce.PartitionProduceResponse
    (answer,) = client.call(request, version).responses[0].partition_responses
    return answer


def fetch_from(
    client: WireClient, *, topic: str = "t", partition: int = 0, offset: int = 0, **fields: Any
) -> fetch.FetchResponse:
    """The answer to a fetch of one partition, which waits for nothing unless asked to."""
    wanted = fetch.FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=fields.pop("partition_max_bytes", MIB),
    )
    version = int(fields.pop("version", 12))
    topics = [fetch.FetchTopic(topic=topic, partitions=[wanted])]
    request = fetch.FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "topics": topics, **fields})
    answer: fetch.FetchResponse = client.call(request, version)
    return answer


def small_batch(*values: bytes, **how: Any) -> bytearray:
    """A batch of the present time, one record per value."""
    now = int(time.time() * 1000)
    key = how.pop("key", None)
    return build_batch([(now, key, value) for value in values or (b"v",)], **how)
