"""A worker with KafkaShareConsumer and its broker, killed (-9) in turns under load.

What a worker was answered as accepted never comes again, and nothing is left out: in the end every
record was given to it at least once, and the group has finished all.
"""

import re
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic
from tests.conformance.test_share_consumer import COMMON
from tests.conformance.test_streams import ended
from tests.conformance.test_streams_groups import quiet_address
from tests.support.clients import java_programs
from tests.support.clients.admin import Admin
from tests.support.clients.java_programs import JavaProgram
from tests.support.clients.queue_member import QueueMember
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not java_programs.available(), reason="needs java, javac and mvn"),
]
PARTITIONS, RECORDS_A_ROUND = 2, 300
KILLS = ("broker", "worker", "broker", "broker", "worker")
FEW = 20
"""Records that are accepted in a round before its kill."""
PLACE = re.compile(r"(\d+:\d+)")


def fill(address: str) -> None:
    producer = Producer({"bootstrap.servers": address, "acks": "all"})
    for number in range(RECORDS_A_ROUND):
        producer.produce("orders", b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def whole_lines(log: Path) -> list[str]:
    """What the worker has said; the last line may still be on its way."""
    return log.read_text().split("\n")[:-1]


def accepted(log: Path) -> int:
    lines = whole_lines(log)
    return sum(len(PLACE.findall(line)) for line in lines if line.startswith("done"))


def has_accepted(log: Path, least: int) -> bool:
    return accepted(log) >= least


def check(log: Path, count: int) -> None:
    """AssertionError when something came again that was accepted, or never came."""
    done, came = set[str](), set[str]()
    for line in whole_lines(log):
        places = PLACE.findall(line)
        if line.startswith("got"):
            again = done.intersection(places)
            assert not again, f"accepted, and given out once more: {sorted(again)[:5]}"
            came.update(places)
        elif line.startswith("done"):
            done.update(places)
    wanted = {f"{index}:{at}" for index in range(PARTITIONS) for at in range(count // PARTITIONS)}
    assert came == wanted, f"{len(wanted - came)} records never came"


def behind(http: str) -> int:
    """Records that the group has not finished; -1 while nothing is known of it."""
    shown = Admin(http).get("/api/share-groups")["groups"]
    return int(next((each["behind"] for each in shown if each["group"] == "g"), -1))


def test_nothing_comes_again_or_is_left_out(tmp_path: Path) -> None:
    program = JavaProgram("QueueWorker", java_programs.client_jars(), tmp_path / "classes")
    address, data, log = quiet_address(), tmp_path / "data", tmp_path / "worker.log"
    with ExitStack() as stack:
        node = stack.enter_context(start_broker(data, COMMON, listen=address))
        create_topic(AdminClient({"bootstrap.servers": address}), "orders", PARTITIONS)
        QueueMember(address, "g", "orders").begin_with_the_first()
        worker = program.start(address, "orders", "g", log=log)
        stack.callback(ended, worker)
        for kill in KILLS:
            before = accepted(log)
            fill(address)
            until(partial(has_accepted, log, before + FEW), log.read_text)
            if kill == "broker":
                node.kill()
                time.sleep(0.2)  # the worker meets nobody there
                node = stack.enter_context(start_broker(data, COMMON, listen=address))
            else:
                ended(worker)
                worker = program.start(address, "orders", "g", log=log)
                stack.callback(ended, worker)
        http = node.facts["http"]
        until(lambda: behind(http) == 0, log.read_text)
    check(log, RECORDS_A_ROUND * len(KILLS))
