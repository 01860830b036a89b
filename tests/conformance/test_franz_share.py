"""franz-go's share consumer, at a real Kafka 4.3 and here: the same program hears the same.

Locks last two seconds on both sides.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from protocol.apis import describe_share_group_offsets as of
from tests.conformance.conftest import create_topic
from tests.conformance.test_share_consumer import COMMON, KAFKA
from tests.support.clients.go_programs import built_program, go
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker

EXERCISES = {"franz-go": "share groups: accepts, releases, rejects, renews, leaves, dies at work"}

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(go() is None, reason="there is no Go 1.26 here"),
]
with_kafka = pytest.mark.skipif(not available(), reason="needs java and mvn")
FOLDER = Path(__file__).parent / "go"
HEARD = {
    "explicit": ["got 0x1 1x1 2x1 3x1 4x1 5x1", "got 1x2 3x2", "got", "Empty 0 explicit 0 0"],
    "strict": [
        "got 0x1 1x1", "got 1x2 2x1", "got 3x1 4x1", "got 3x2 5x1", "got", "Empty 0 strict 0 0",
    ],
    "renew": ["got 0x1 1x1 2x1 3x1 4x1 5x1", "got", "Empty 0 renew 0 0"],
    "leave": ["got 0x1 1x1 2x1 3x1 4x1 5x1", "got 1x2 2x2 3x2 4x2 5x2", "Empty 0 leave 0 0"],
}  # fmt: skip
RECORDS = 3000
"""A worker takes 5 in 30 ms, and the others come when they are given a share, seconds later."""


@pytest.fixture(scope="module", params=[pytest.param("kafka", marks=with_kafka), "horolog"])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    with ExitStack() as stack:
        data_dir = tmp_path_factory.mktemp(f"franz-{request.param}") / "data"
        if request.param == "kafka":
            node = stack.enter_context(start_kafka(data_dir, KAFKA))
        else:
            node = stack.enter_context(start_broker(data_dir, COMMON))
        yield node.bootstrap


def fill(bootstrap: str, topic: str, count: int) -> None:
    create_topic(AdminClient({"bootstrap.servers": bootstrap}), topic, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100})
    for number in range(count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("way", HEARD)
def test_a_member_hears_what_it_hears_of_kafka(way: str, bootstrap: str) -> None:
    fill(bootstrap, way, 6)
    done = subprocess.run(
        [built_program(FOLDER), "franz-go", "share", bootstrap, way, f"{way}-group", way],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == HEARD[way]


class Worker:
    """A member that accepts what it gets, and says it once that was answered."""

    def __init__(self, bootstrap: str, log: Path) -> None:
        self._log = log
        command = [built_program(FOLDER), "franz-go", "share", bootstrap, "work", "workers", "work"]
        with log.open("ab") as sink:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )

    def read(self) -> list[int]:
        """Offsets that it has accepted."""
        lines = self._log.read_text().splitlines(keepends=True)
        words = [line.split() for line in lines if line.endswith("\n")]
        return [int(each[2]) for each in words if each[0] == "read"]

    def kill(self) -> None:
        self._child.kill()
        self._child.wait(30)


def lag(wire: WireClient) -> int:
    asked = of.DescribeShareGroupOffsetsGroup(group_id="workers", topics=None)
    request = of.DescribeShareGroupOffsetsRequest(groups=[asked])
    (told,) = wire.call(request, 1).groups
    return sum(part.lag for topic in told.topics for part in topic.partitions)


def test_what_a_worker_that_dies_had_goes_to_another(bootstrap: str, tmp_path: Path) -> None:
    fill(bootstrap, "work", RECORDS)
    workers = [Worker(bootstrap, tmp_path / f"{number}.log") for number in range(3)]
    try:
        until(lambda: sum(bool(each.read()) for each in workers) > 1, "nobody works")
        next(each for each in workers if each.read()).kill()
        wire = WireClient(*_place(bootstrap))
        until(lambda: lag(wire) == 0, "something is left")
        time.sleep(0.5)  # what was answered is said
    finally:
        for each in workers:
            each.kill()
    wire.close()
    read = [offset for each in workers for offset in each.read()]
    assert len(read) == len(set(read)), "an acknowledgement that was answered did not hold"
    assert set(read) <= set(range(RECORDS))
    assert len(read) >= RECORDS - 5, "what the dead one had accepted without saying so"


def _place(bootstrap: str) -> tuple[str, int]:
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)
