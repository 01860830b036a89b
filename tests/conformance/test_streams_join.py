"""A windowed join of two streams with `group.protocol=streams`, killed (-9) in the middle.

Record times are out of order on both sides, both are repartitioned first, from topics of three
and of two partitions. Application and broker are killed with more input just written; what a
reader of committed records finds in the end is the plain computation's, each pair once, at the
later of its two record times. Records that come after the grace are joined with nothing.
"""

import random
import subprocess
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic, start_node
from tests.conformance.test_streams import ended
from tests.conformance.test_streams_groups import SHORT_TIMES, quiet_address
from tests.support.clients import java_programs
from tests.support.clients.java_programs import JavaProgram
from tests.support.patience import until

EXERCISES = {"Kafka Streams": "windowed join of two streams (KIP-1071), exactly once; kills (-9)"}
pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not java_programs.available(), reason="needs Java and Maven"),
]
GROUP = "windowed-join"
SIDES = {"orders": 3, "payments": 2}
OUTPUT, OUTPUT_PARTITIONS = "paid", 3
KEYS, RECORDS, SEED = 30, 200, 3
DIFFERENCE_MS, SPREAD_MS, GRACE_MS = 5_000, 60_000, 300_000
STORES = ("join-this-join-store", "join-other-join-store")
INTERNAL = {f"{GROUP}-{store}-changelog" for store in STORES} | {
    f"{GROUP}-join-{side}-repartition" for side in ("left", "right")
}

Joined = Counter[tuple[str, str, int]]
"""How often each (key, names of both sides, record time) came out."""


@dataclass
class Input:
    """What was written to both sides; one broker's address."""

    address: str
    dice: random.Random = field(default_factory=lambda: random.Random(SEED))
    begin_ms: int = field(default_factory=lambda: (int(time.time()) - 3600) * 1000)
    written: dict[str, list[tuple[str, str, int]]] = field(
        default_factory=lambda: {side: [] for side in SIDES}
    )

    def fill(self, count: int = RECORDS, later_ms: int = 0, expected: bool = True) -> None:
        """More on both sides, in no order of time; `expected` False: too late to be joined."""
        producer = Producer({"bootstrap.servers": self.address, "acks": "all"})
        for _ in range(count):
            for side, written in self.written.items():
                key = f"k{self.dice.randrange(KEYS)}"
                at_ms = self.begin_ms + later_ms + self.dice.randrange(SPREAD_MS)
                name = f"{side}{len(written)}{'' if expected else '-late'}"
                producer.produce(side, f"{key}:{name}", timestamp=at_ms)
                if expected:
                    written.append((key, name, at_ms))
        assert producer.flush(30) == 0

    def pairs(self) -> Joined:
        """The plain computation: each of one side with each of the other."""
        return Counter(
            (key, f"{name},{other}", max(at_ms, other_ms))
            for key, name, at_ms in self.written["orders"]
            for other_key, other, other_ms in self.written["payments"]
            if key == other_key and abs(at_ms - other_ms) <= DIFFERENCE_MS
        )


def joined(address: str) -> Joined:
    """All that a reader of committed records finds in the output, up to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(OUTPUT, index, 0) for index in range(OUTPUT_PARTITIONS)])
    found, ends = Joined(), 0
    while ends < OUTPUT_PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, "no end within 30 s"
        if message.error():
            ends += 1
            continue
        key, value = (message.key() or b"").decode(), (message.value() or b"").decode()
        found[key, value, message.timestamp()[1]] += 1
    consumer.close()
    return found


def test_a_windowed_join_is_exact_through_kills(tmp_path: Path) -> None:
    program = JavaProgram("WindowedJoin", java_programs.streams_jars(), tmp_path / "classes")
    address, data_dir, log = quiet_address(), tmp_path / "data", tmp_path / "application.log"
    times = (str(DIFFERENCE_MS), str(GRACE_MS))
    begin = [address, *SIDES, OUTPUT, str(tmp_path / "state"), *times]
    given = Input(address)
    with ExitStack() as stack:

        def started() -> subprocess.Popen[bytes]:
            application = program.start(*begin, log=log)
            stack.callback(ended, application)
            return application

        def complete() -> None:
            until(lambda: joined(address) == given.pairs(), lambda: _missed(given, log), every=0.5)

        node = stack.enter_context(start_node(data_dir, SHORT_TIMES, listen=address))
        admin = AdminClient({"bootstrap.servers": address})
        for topic, partitions in {**SIDES, OUTPUT: OUTPUT_PARTITIONS}.items():
            create_topic(admin, topic, partitions)
        application = started()
        for kills_the_broker in (False, True, False):
            before = joined(address)
            given.fill()
            until(partial(_more_than, address, before), log.read_text, every=0.2)
            given.fill()
            if kills_the_broker:
                node.kill()
                node = stack.enter_context(start_node(data_dir, SHORT_TIMES, listen=address))
            else:
                ended(application)
                application = started()
        complete()
        assert admin.list_topics().topics.keys() >= INTERNAL
        given.fill(later_ms=2 * GRACE_MS)  # stream time of every partition goes past the grace
        complete()
        given.fill(expected=False)
        given.fill(later_ms=2 * GRACE_MS)
        complete()


def _more_than(address: str, before: Joined) -> bool:
    return joined(address) > before


def _missed(given: Input, log: Path) -> str:
    """What differs, and the end of the application's log."""
    found, wanted = joined(given.address), given.pairs()
    lost, extra = wanted - found, found - wanted
    return (
        f"{lost.total()} lost: {list(lost)[:5]}; {extra.total()} too many: {list(extra)[:5]}; "
        f"{log.read_text()[-3000:]}"
    )
