"""A clock that tests hold, from any language: a plain client, the admin port, and no sleep."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.records.builder import build_batch
from tests.support.clients.admin import Admin
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import HOROLOG, start_broker
from tests.support.worlds.node_process import NodeProcess
from tests.support.worlds.watched_broker import produce_to

START = "2024-02-28T12:00:00Z"
DAY_MS = 86_400_000
FASTER = 50_000  # times as fast as the machine, at the very least


class Held:
    """A broker with a held clock, and its two ports."""

    def __init__(self, process: NodeProcess, data_dir: Path) -> None:
        self.process = process
        self.data_dir = data_dir
        self.admin = Admin(process.facts["http"])
        self.began_ms: int = self.admin.post("/api/clock/freeze")["wall"]["ms"]

    def make_topic(self, topic: str, **settings: str) -> None:
        """A topic with a batch to a segment; settings with underscores for dots."""
        configs = [
            CreatableTopicConfig(name=name.replace("_", "."), value=value)
            for name, value in {"internal_segment_bytes": "300", **settings}.items()
        ]
        new = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=configs)
        with self.client() as client:
            answer = client.call(CreateTopicsRequest(topics=[new]), 7)
        assert answer.topics[0].error_code == 0

    def client(self) -> WireClient:
        host, port = self.process.bootstrap.rsplit(":", 1)
        return WireClient(host, int(port))

    def now_ms(self) -> int:
        found: int = self.admin.get("/api/clock")["wall"]["ms"]
        return found

    def files(self, topic: str, suffix: str) -> list[str]:
        return sorted(path.name for path in (self.data_dir / f"{topic}-0").glob(f"*{suffix}"))


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    with start_broker(tmp_path / "data", options=["--test-clock", START]) as process:
        broker = Held(process, tmp_path / "data")
        broker.make_topic("t")
        yield broker


def produce(client: WireClient, at_ms: int, count: int = 1, topic: str = "t") -> None:
    for _ in range(count):
        batch = build_batch([(at_ms, None, b"x" * 200)])
        answer = produce_to(client, batch, topic=topic, acks=1)
        assert answer.error_code == 0, answer


def test_a_week_of_retention_and_a_month_of_waiting_pass_in_a_moment(held: Held) -> None:
    producer = Producer({"bootstrap.servers": held.process.bootstrap})
    for number in range(5):
        producer.produce("t", b"v" * 200, timestamp=held.began_ms + number)
        assert producer.flush(30) == 0
    assert len(held.admin.segments("t")) == 5

    began = time.monotonic()
    held.admin.post("/api/clock/step", by="6d")
    assert len(held.admin.segments("t")) == 5
    held.admin.post("/api/clock/step", by="2d")
    (left,) = held.admin.segments("t")
    assert (left["base_offset"], left["size_bytes"]) == (5, 0)
    assert len(held.files("t", ".log.deleted")) == 5
    held.admin.post("/api/clock/step", by="61s")
    assert held.files("t", ".deleted") == []
    moved = held.admin.post("/api/clock/step", by="30d", every="1d")
    took = time.monotonic() - began

    assert moved["passes"] == 30
    assert held.now_ms() == held.began_ms + 38 * DAY_MS + 61_000
    assert moved["steps_seen"] == 0
    assert 38 * DAY_MS / 1000 / took > FASTER


def test_an_idle_segment_ends_when_its_time_has_come(held: Held) -> None:
    held.make_topic("idle", segment_ms="86400000", retention_ms="-1")
    with held.client() as client:
        produce(client, held.began_ms, topic="idle")
    held.admin.post("/api/clock/step", by="1d")
    assert [each["state"] for each in held.admin.segments("idle")] == ["active"]
    roll = held.admin.get("/api/topics/idle/segments")["partitions"][0]["roll"]
    assert roll["deadline"]["ms"] == held.now_ms()
    held.admin.post("/api/clock/step", by="1s")
    assert [each["state"] for each in held.admin.segments("idle")] == ["closed", "active"]
    roll = held.admin.get("/api/topics/idle/segments")["partitions"][0]["roll"]
    assert roll["deadline"] is None
    assert roll["because"].startswith("empty")


def test_a_month_of_compaction_lag_passes_in_a_moment(held: Held) -> None:
    held.make_topic(
        "changes",
        internal_segment_bytes="100000",
        cleanup_policy="compact",
        segment_ms=str(300 * DAY_MS),
        max_compaction_lag_ms=str(30 * DAY_MS),
        min_cleanable_dirty_ratio="1.0",
    )
    producer = Producer({"bootstrap.servers": held.process.bootstrap})
    for number in range(5):
        producer.produce("changes", b"v%d" % number, b"key", timestamp=held.began_ms)
        assert producer.flush(30) == 0
    began = time.monotonic()
    held.admin.post("/api/clock/step", by="29d")
    (before,) = held.admin.segments("changes")
    held.admin.post("/api/clock/step", by="2d")
    took = time.monotonic() - began
    cleaned, active = held.admin.segments("changes")
    assert 31 * DAY_MS / 1000 / took > FASTER
    assert (active["base_offset"], active["size_bytes"]) == (5, 0)
    assert cleaned["size_bytes"] < before["size_bytes"] / 4
    (state,) = held.admin.get("/api/topics/changes/segments")["partitions"]
    assert (state["compaction"]["first_dirty_offset"], state["compaction"]["overdue_ms"]) == (5, 0)


def waiting_fetch(client: WireClient, wait_ms: int) -> tuple[object, int, int]:
    wanted = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="t", partitions=[wanted])]
    return client.send(FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=topics), 11)


def test_a_fetch_that_waits_an_hour_is_answered_when_the_hour_is_over(held: Held) -> None:
    with held.client() as client:
        produce(client, held.began_ms)
        sent = waiting_fetch(client, 3_600_000)
        held.admin.post("/api/clock/step", by="59m")
        client.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.receive_frame()
        client.socket.settimeout(20)
        held.admin.post("/api/clock/step", by="61s")
        response = client.receive(*sent)
        assert response.responses[0].partitions[0].error_code == 0
        assert not response.responses[0].partitions[0].records


def test_a_clock_that_stands_still_does_not_hang_a_client(held: Held) -> None:
    with held.client() as client:
        produce(client, held.began_ms)
        before = held.now_ms()
        for _ in range(3):
            response = client.receive(*waiting_fetch(client, 50))
            assert not response.responses[0].partitions[0].records
        assert held.now_ms() == before


def test_time_in_a_hurry_lets_things_happen_by_themselves(held: Held) -> None:
    with held.client() as client:
        produce(client, held.began_ms, 3)
        held.admin.post("/api/clock/speed", factor=5_000_000)
        until = time.monotonic() + 20
        while held.files("t", ".log") != ["00000000000000000003.log"]:
            assert time.monotonic() < until, "nothing went"
            time.sleep(0.01)
        held.admin.post("/api/clock/freeze")
        before = held.now_ms()
        assert before > held.began_ms + 7 * DAY_MS
        assert held.now_ms() == before
        held.admin.post("/api/clock/release")
        assert held.admin.get("/api/clock")["test_clock"]["speed"] == 1.0


def test_connections_and_the_log_keep_to_the_machine(held: Held) -> None:
    with held.client() as client:
        produce(client, held.began_ms)
        held.admin.post("/api/clock/step", by="1000d")
        produce(client, held.now_ms())
    text = held.process.log.read_text()
    assert "event=test_clock" in text
    assert "test clock in use" in text
    assert "2024" not in {line[5:9] for line in text.splitlines()}


@pytest.mark.parametrize(
    ("path", "parameters", "word"),
    [
        ("step", {"by": "-1h"}, "set the wall clock back"),
        ("step", {"by": "10000000d"}, "9999"),
        ("step", {"by": "1d", "every": "1"}, "10000 steps"),
        ("step", {"by": "1d", "every": "0"}, "10000 steps"),
        ("step", {"by": "1h", "every": "1m", "clock": "wall"}, "no stops"),
        ("step", {"by": "soon"}, "by:"),
        ("step", {}, "by is missing"),
        ("step", {"by": "1h", "clock": "sun"}, "both, wall"),
        ("set", {"to": "yesterday"}, "ISO-8601"),
        ("set", {"to": "1969-12-31"}, "1970"),
        ("set", {"to": "-1h", "clock": "both"}, "set the wall clock back"),
        ("speed", {"factor": "-1"}, "speed"),
        ("speed", {"factor": "nan"}, "speed"),
        ("speed", {"factor": "1e400"}, "speed"),
    ],
)
def test_a_move_that_cannot_be_is_refused_and_moves_nothing(
    shared: Held, path: str, parameters: dict[str, str], word: str
) -> None:
    before = shared.now_ms()
    answered = shared.admin.ask("POST", f"/api/clock/{path}", **parameters)
    assert answered.status == 400
    assert word in answered.message
    assert shared.now_ms() == before


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    data_dir = tmp_path_factory.mktemp("held") / "data"
    with start_broker(data_dir, options=["--test-clock"]) as process:
        yield Held(process, data_dir)


def test_a_start_that_is_no_time_ends_in_one_line(tmp_path: Path) -> None:
    command = [str(HOROLOG), "serve", "--data-dir", str(tmp_path), "--test-clock", "soon"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    assert "--test-clock" in ended.stderr
    assert "ISO-8601" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_moves_of_the_readme_are_made(held: Held) -> None:
    mark = "<!-- executed by tests/integration/test_held_clock_process.py -->\n```sh\n"
    text = (
        (Path(__file__).resolve().parents[2] / "docs" / "test-clock.md").read_text().split(mark)[1]
    )
    moves = text.split("```")[0].replace("127.0.0.1:9404", held.admin.address)
    done = subprocess.run(
        ["sh", "-eu"], input=moves, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    *_, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last["test_clock"]["speed"] == 1.0
    assert last["wall"]["iso"].startswith("2106-02-07")
    assert last["hold"]["because"] == "clock_stepped"
    assert last["steps_seen"] == 2
