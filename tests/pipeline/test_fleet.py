"""Spark reads from a fleet, and archives it, while owners of partitions are killed."""

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.fleet.conftest import both
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.broker_process import HOROLOG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["both"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_spec("pyspark") is None, reason="needs '.[spark]'"),
]
NODES, PARTITIONS, RECORDS = (1, 2, 3), 6, 24_000
PATIENCE = 120.0
PAD = b"x" * 1000


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, NODES) as brokers:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        admin.create_topics([NewTopic("t", PARTITIONS)])["t"].result(30)
        yield brokers


class Writer:
    """An idempotent producer of numbered records; each number is one record."""

    def __init__(self, bootstrap: str) -> None:
        self.sent = 0
        self._producer = Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5,
            "message.timeout.ms": 120_000, "topic.metadata.refresh.interval.ms": 1000,
            "reconnect.backoff.max.ms": 500,
        })  # fmt: skip

    def send(self, count: int) -> None:
        for _ in range(count):
            value = b"%08d" % self.sent + PAD
            self._producer.produce("t", value, partition=self.sent % PARTITIONS)
            self.sent += 1
            if self.sent % 1000 == 0:
                self._producer.poll(0)
        assert self._producer.flush(PATIENCE) == 0


def leader_of(fleet: FleetOfBrokers, partition: int) -> int:
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    found: list[int] = []

    def is_led() -> bool:
        leader = admin.list_topics("t", timeout=10).topics["t"].partitions[partition].leader
        found[:] = [leader]
        return leader in fleet.running

    until(is_led, "no leader")
    return found[0]


def loaded(session: "SparkSession", fleet: FleetOfBrokers, **more: str) -> "DataFrame":
    options = {"kafka.bootstrap.servers": fleet.bootstrap, "subscribe": "t", **more}
    return session.read.format("horolog").options(**options).load()


class InBackground:
    """Work in a thread, and what it raised."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._raised: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - whoever ends it gets it
            self._raised.append(error)

    @property
    def is_at_work(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if self._raised:
            raise self._raised[0]


@pytest.mark.parametrize("mode", ["wire", "auto"])
def test_spark_reads_each_record_once_while_an_owner_is_killed(
    mode: str, fleet: FleetOfBrokers, spark: "SparkSession", tmp_path: Path
) -> None:
    """Killed when the first of its tasks are done, with its disk when files are read."""
    from pipeline.spark.session import register

    register(spark)
    Writer(fleet.bootstrap).send(RECORDS)
    frame = loaded(spark, fleet, mode=mode, minPartitions="60")
    out = tmp_path / "out"
    slow = frame.selectExpr("partition", "offset", "int(string(substring(value, 1, 8))) as n")

    job = InBackground(lambda: slow.write.parquet(str(out)))
    until(lambda: list(out.rglob("part-*")) or not job.is_at_work, "nothing is written")
    killed = leader_of(fleet, PARTITIONS - 1)  # its tasks are the last ones
    fleet.kill(killed)
    was_at_work = job.is_at_work
    if mode == "auto":
        fleet.lose_disk(killed)
    job.end()

    assert was_at_work, "the job was over before the owner was killed"
    rows = ds.dataset(out).to_table().to_pylist()
    assert sorted((row["partition"], row["offset"]) for row in rows) == [
        (partition, offset)
        for partition in range(PARTITIONS)
        for offset in range(RECORDS // PARTITIONS)
    ]
    assert sorted(row["n"] for row in rows) == list(range(RECORDS))


def test_a_stream_has_each_record_once_through_kills(
    fleet: FleetOfBrokers, spark: "SparkSession", tmp_path: Path
) -> None:
    from pipeline.spark.session import register

    register(spark)
    options = {"kafka.bootstrap.servers": fleet.bootstrap, "subscribe": "t", "mode": "wire"}
    options |= {"startingOffsets": "earliest"}
    stream = spark.readStream.format("horolog").options(**options).load()
    numbers = stream.selectExpr("int(string(substring(value, 1, 8))) as n")
    out = tmp_path / "out"
    query = (
        numbers.writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(tmp_path / "state"))
        .start()
    )
    writer = Writer(fleet.bootstrap)
    try:
        for turn in range(3):
            writer.send(1000)
            killed = leader_of(fleet, turn)
            fleet.kill(killed)
            writer.send(1000)
            fleet.start(killed)
        until((out / "_spark_metadata/0").exists, "nothing is written")
        until(lambda: spark.read.parquet(str(out)).count() >= writer.sent, "records are missing")
        assert query.exception() is None
    finally:
        query.stop()
    found = spark.read.parquet(str(out)).collect()
    assert sorted(row.n for row in found) == list(range(writer.sent))


@pytest.mark.parametrize("engine", ["native", "spark"])
def test_an_archive_has_each_record_once_through_kills(
    engine: str, fleet: FleetOfBrokers, tmp_path: Path
) -> None:
    """It follows the topic while one owner after the other is killed, one with its disk."""
    out, dice = tmp_path / "archive", random.Random(3)
    asked = [HOROLOG, "spark", "archive", "--bootstrap", fleet.bootstrap, "--topic", "t", "--json"]
    asked += ["--out", str(out), "--follow", "500ms", "--round-bytes", "300000"]
    with (tmp_path / "said").open("w") as said:
        job = subprocess.Popen(
            [*asked, "--engine", engine], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            env=dict(os.environ), start_new_session=True,
        )  # fmt: skip
    try:
        writer = Writer(fleet.bootstrap)
        for turn in range(6):
            writer.send(1000)
            time.sleep(dice.random())
            killed = leader_of(fleet, turn % PARTITIONS)
            fleet.kill(killed)
            if turn % 3 == 2:
                fleet.lose_disk(killed)
            writer.send(500)
            fleet.start(killed)
        until(
            lambda: len(archived(out)) >= writer.sent or job.poll() is not None,
            "records are missing",
        )
        assert job.poll() is None, (tmp_path / "said").read_text()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert Counter(archived(out)) == Counter(range(writer.sent))


def archived(out: Path) -> list[int]:
    """Numbers in what counts."""
    if not list((out / "records").rglob("*.parquet")):
        return []
    rows = ds.dataset(out / "records", partitioning="hive").to_table(columns=["value"])
    return [int(each[:8]) for each in rows["value"].to_pylist()]
