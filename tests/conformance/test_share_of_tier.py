"""Share groups whose records only the tier's store has, read by KafkaShareConsumer.

The start of the queue is in segments that are not here any more. All is read and stays finished
through kill -9; delays, dead letters and redrive work as for records that are here; and while the
store is silent, or refuses, nothing is lost, queues beside it go on, and so does all when it is
well again.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.cli.main import main
from tests.integration.tier.test_tiered_broker import (
    EARLIEST_LOCAL,
    make_topic,
    offset_of,
    settings,
)
from tests.support.clients import java_programs
from tests.support.clients.admin import Admin
from tests.support.clients.go_programs import BUILD_SECONDS
from tests.support.clients.java_programs import JavaProgram
from tests.support.clients.queue_member import QueueMember
from tests.support.patience import until
from tests.support.tier.fault_proxy import FaultProxy, fault_proxy
from tests.support.tier.fault_ways import Way
from tests.support.tier.s3_server import S3Server, only_aws, seaweedfs
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(BUILD_SECONDS + 240),
    pytest.mark.skipif(not java_programs.available(), reason="needs java, javac and mvn"),
]
RECORDS, VALUE_BYTES, LOCAL = 2500, 4000, 800
FAULTS = (Way.HANGS, Way.INTERNAL, Way.RESET_BEFORE)
DUE_AFTER_MS = 40_000
TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> JavaProgram:
    classes = tmp_path_factory.mktemp("drain-classes")
    return JavaProgram("QueueDrain", java_programs.client_jars(), classes)


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with seaweedfs() as running:
        yield running


class Got(NamedTuple):
    """One delivery."""

    topic: str
    offset: int
    deliveries: int
    value: str
    due: str


class World:
    """A broker with a tier whose store can be at fault, and readers of its queues."""

    def __init__(
        self, stack: ExitStack, folder: Path, server: S3Server, program: JavaProgram
    ) -> None:
        """The broker runs."""
        self.store: FaultProxy = stack.enter_context(fault_proxy(server.address))
        self._variables = server.environment | {"AWS_ENDPOINT_URL": f"http://{self.store.address}"}
        token = folder / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        self._settings = settings(server, folder.name) | {"horolog.http.token.file": str(token)}
        self._stack, self._folder, self._program = stack, folder, program
        self.log = folder / "reader.log"
        self.log.touch()
        self.start()

    def start(self) -> None:
        """The broker, on what it has; nothing of the store's is here then."""
        with only_aws(self._variables):
            node = start_broker(self._folder / "data", self._settings)
        self.node = self._stack.enter_context(node)

    def killed(self) -> None:
        """-9, and started again."""
        self.node.kill()
        self.start()

    def group(self, name: str, topic: str = "t", **more: str) -> None:
        """Settings of a group: it begins with the first record."""
        QueueMember(self.node.bootstrap, name, topic).begin_with_the_first(**more)

    @contextmanager
    def reader(self, group: str, topics: str = "t", rejected: int = 0) -> Iterator[None]:
        """A reader of queues while the block lasts."""
        process = self._program.start(
            self.node.bootstrap, topics, group, str(rejected), log=self.log
        )
        try:
            yield
        finally:
            process.kill()
            process.wait()

    def got(self) -> list[Got]:
        """Deliveries so far; AssertionError when an acknowledgement was refused."""
        said = self.log.read_text().split("\n")[:-1]  # the last one may still be on its way
        lines = [each.split() for each in said if each[:1] != "["]
        assert not [each for each in lines if each[0] == "refused"], self.log.read_text()[-3000:]
        return [Got(each[0], int(each[1]), int(each[2]), *each[3:]) for each in lines]

    def behind(self, group: str) -> int:
        """Records that the group has not finished; -1 while nothing is known of it."""
        shown = Admin(self.node.facts["http"]).get("/api/share-groups")["groups"]
        return int(next((each["behind"] for each in shown if each["group"] == group), -1))

    def finishes(self, group: str) -> None:
        """Waits until the group has finished all."""
        until(lambda: self.behind(group) == 0, lambda: self.log.read_text()[-3000:])

    def fill(self, topic: str, times: Callable[[int], int], count: int = RECORDS) -> None:
        """Records with their number in front of the value."""
        producer = Producer({"bootstrap.servers": self.node.bootstrap, "linger.ms": 5})
        for number in range(count):
            producer.produce(topic, value_of(number), timestamp=times(number))
            producer.poll(0)
        assert producer.flush(60) == 0

    def tiered(self, topic: str, times: Callable[[int], int], **more: str) -> None:
        """A topic of which only the end is here."""
        make_topic(self.node.bootstrap, topic, **more)
        self.fill(topic, times)
        until(lambda: self.local_start(topic) >= RECORDS - LOCAL, "nothing leaves")

    def local_start(self, topic: str) -> int:
        return offset_of(self.node.bootstrap, topic, EARLIEST_LOCAL)[1]

    def ill(self, way: Way) -> None:
        """The store gives no bytes of records from now on."""
        self.store.fail(lambda call: way if call.step.startswith("get") else None)


@pytest.fixture
def world(tmp_path: Path, server: S3Server, program: JavaProgram) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack, tmp_path, server, program)


def value_of(number: int) -> bytes:
    return b"%08d" % number + b"x" * (VALUE_BYTES - 8)


def now_ms(_: int) -> int:
    return time.time_ns() // 1_000_000


def each_once(got: list[Got], topic: str, count: int = RECORDS) -> None:
    """AssertionError unless each record of a topic came, with its own value, and came once."""
    found = sorted(each for each in got if each.topic == topic)
    wanted = [Got(topic, number, 1, f"{number:08d}", "due") for number in range(count)]
    assert found == wanted


def test_all_is_read_and_stays_finished(world: World) -> None:
    world.tiered("t", now_ms)
    world.group("g")
    world.killed()
    with world.reader("g"):
        until(lambda: len(world.got()) >= RECORDS, lambda: world.log.read_text()[-3000:])
        world.finishes("g")
    each_once(world.got(), "t")
    world.killed()
    world.finishes("g")
    world.fill("t", now_ms, 1)
    with world.reader("g"):
        until(lambda: len(world.got()) > RECORDS, "the next record does not come")
    assert world.got()[RECORDS:] == [Got("t", RECORDS, 1, "00000000", "due")]


def test_delayed_records_come_at_their_time(world: World) -> None:
    """Every other one is due later, and is in the store long before that."""
    begin_ms = now_ms(0)
    world.tiered("t", lambda number: begin_ms + DUE_AFTER_MS * (number % 2))
    world.group("g", horolog_share_delay="record-time")
    world.killed()
    with world.reader("g"):
        until(lambda: len(world.got()) >= RECORDS // 2, lambda: world.log.read_text()[-3000:])
        world.finishes("g")
    each_once(world.got(), "t")
    assert not any(each.offset % 2 for each in world.got()[: RECORDS // 2])


def test_letters_of_tiered_records_and_back(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The letters are no copies: the records are read in the store once more to go back. While it
    refuses, none is passed over.
    """

    def redriven() -> Mapping[str, Any]:
        main(("queues", "redrive", "g", "--execute", "--json"))
        found: Mapping[str, Any] = json.loads(capsys.readouterr().out)
        return found

    world.tiered("t", now_ms)
    make_topic(
        world.node.bootstrap, "dlq.t",
        **{"remote.storage.enable": "false", "errors.deadletterqueue.group.enable": "true"},
    )  # fmt: skip
    world.group("g", errors_deadletterqueue_topic_name="dlq.t")
    world.killed()
    with world.reader("g", rejected=50):
        world.finishes("g")
    each_once(world.got(), "t")
    world.killed()
    monkeypatch.setenv("HOROLOG_HTTP_TOKEN", TOKEN)
    monkeypatch.setenv("HOROLOG_HTTP", world.node.facts["http"])
    world.ill(Way.INTERNAL)
    answer = redriven()
    assert answer["stopped"] is not None
    assert not any(answer["passed_over"].values()), answer
    world.store.heal()
    until(lambda: redriven()["left"] == 0, "not all letters go back")
    wanted = [value_of(number) for number in range(0, RECORDS, 50)]
    assert values_of(world.node.bootstrap, "t", RECORDS, len(wanted)) == wanted


def values_of(bootstrap: str, topic: str, first: int, count: int) -> list[bytes | None]:
    """Values of records from an offset on, once there are so many."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "judge"})
    consumer.assign([TopicPartition(topic, 0, first)])
    found: list[bytes | None] = []
    until(
        lambda: (
            found.extend(each.value() for each in consumer.consume(100, 0.5)) or len(found) >= count
        ),
        "not as many records",
    )
    consumer.close()
    return found


@pytest.mark.parametrize("way", FAULTS)
@pytest.mark.parametrize("delay", ["none", "record-time"])
def test_a_store_at_fault_holds_up_nobody_else(world: World, way: Way, delay: str) -> None:
    world.tiered("t", now_ms)
    make_topic(world.node.bootstrap, "u")
    world.group("g", horolog_share_delay=delay)
    world.killed()
    world.ill(way)
    with world.reader("g", "t,u"):
        world.fill("u", now_ms, LOCAL)
        until(
            lambda: sum(each.topic == "u" for each in world.got()) >= LOCAL,
            lambda: world.log.read_text()[-3000:],
        )
        assert len(world.store.happened) > 0, "the store was not asked"
        assert not [each for each in world.got() if each.topic == "t"]
        world.store.heal()
        until(lambda: len(world.got()) >= RECORDS + LOCAL, lambda: world.log.read_text()[-3000:])
        world.finishes("g")
    each_once(world.got(), "t")
    each_once(world.got(), "u", LOCAL)
