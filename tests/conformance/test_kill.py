"""Rounds of kill -9 under load from four producers: what was acknowledged stays where it was put.

HOROLOG_KILL_ROUNDS (3), HOROLOG_KILL_RATE (records a second of each producer, 3000) and
HOROLOG_KILL_BYTES (a record's size, 300) make it as long as one likes; how long each restart took
is printed (pytest -s) and never judged.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic, start_node
from tests.conformance.ledger_producer import value_of
from tests.conformance.test_confluent_client import consumer_of, read

PRODUCERS = 4
ROUNDS = int(os.environ.get("HOROLOG_KILL_ROUNDS", "3"))
RATE = os.environ.get("HOROLOG_KILL_RATE", "3000")
SIZE_BYTES = os.environ.get("HOROLOG_KILL_BYTES", "300")
LOAD_SECONDS = 1.0
TOPIC = "ledgered"
pytestmark = pytest.mark.timeout(120 + 30 * ROUNDS)


def free_address() -> str:
    """The broker comes back at the same address, as a restarted service does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextmanager
def producer(address: str, number: int, ledger: Path) -> Iterator[None]:
    """Runs until the block ends, then says goodbye in peace or fails."""
    arguments = [address, TOPIC, str(number), str(ledger), RATE, SIZE_BYTES]
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.conformance.ledger_producer", *arguments]
    )
    try:
        yield
    finally:
        child.terminate()
        code = child.wait(100)
    assert code == 0, "a producer gave up, or was left without an answer"


def acknowledged(ledger: Path) -> list[tuple[int, int]]:
    """(offset, sequence) of every acknowledged record, in the order of the acknowledgements."""
    lines = (line.split() for line in ledger.read_text().splitlines())
    return [(int(offset), int(sequence)) for offset, sequence in lines]


def stored(address: str, partition: int) -> list[bytes]:
    """Values of a partition from its first offset; offsets must have no holes."""
    with closing(consumer_of(address)) as consumer:
        start, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=30)
        assert start == 0
        consumer.assign([TopicPartition(TOPIC, partition, 0)])
        messages = read(consumer, end)
    assert [message.offset() for message in messages] == list(range(end))
    return [message.value() or b"" for message in messages]


def test_nothing_acknowledged_is_lost_and_no_offset_is_reused(tmp_path: Path) -> None:
    address, data = free_address(), tmp_path / "data"
    ledgers = [tmp_path / f"ledger-{number}" for number in range(PRODUCERS)]
    node = start_node(data, listen=address)
    try:
        create_topic(AdminClient({"bootstrap.servers": address}), TOPIC, PRODUCERS)
        with ExitStack() as running:
            for number, ledger in enumerate(ledgers):
                running.enter_context(producer(address, number, ledger))
            for round_number in range(1, ROUNDS + 1):
                time.sleep(LOAD_SECONDS)
                node.kill()
                node = start_node(data, listen=address)
                size = sum(path.stat().st_size for path in data.glob(f"{TOPIC}-*/*.log"))
                took = node.ready_after_seconds
                print(f"round {round_number}: {size >> 20} MiB, ready after {took:.2f} s")
            time.sleep(LOAD_SECONDS)
        for number, ledger in enumerate(ledgers):
            check_partition(stored(address, number), acknowledged(ledger), number)
    finally:
        node.kill()


def check_partition(values: list[bytes], ledger: list[tuple[int, int]], number: int) -> None:
    assert len(ledger) > 0
    offsets = [offset for offset, _ in ledger]
    assert len(set(offsets)) == len(offsets), "an offset was given away twice"
    lost = [
        (offset, sequence)
        for offset, sequence in ledger
        if offset >= len(values) or values[offset] != value_of(number, sequence, int(SIZE_BYTES))
    ]
    assert not lost, f"{len(lost)} acknowledged records are not where they were put: {lost[:5]}"
    if number % 2 == 0:
        assert len(set(values)) == len(values) == len(ledger), (
            "idempotent, yet something came twice"
        )
        assert [sequence for _, sequence in sorted(ledger)] == list(range(len(ledger)))
