"""The image of the jobs, made from the package index, beside a broker: over the wire, from its
files, and on Spark.

Making it takes several minutes and two gigabytes, so this is only done when it is asked for.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.clients.containers import ROOT, Stack, compose_command, docker

IMAGE = "horolog-spark:test"
ASKED_BY = "SPARK_IMAGE_TEST"
BUILD_SECONDS = 1100
RECORDS = 1000


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    if not os.environ.get(ASKED_BY):
        pytest.skip(f"the image of the jobs takes minutes to make: {ASKED_BY}=1 tests it")
    if not compose_command():
        pytest.skip("neither `docker compose` nor `docker-compose` is there")
    recipe = str(ROOT / "config" / "container" / "spark.Dockerfile")
    build = ["build", "--network=host", "--tag", IMAGE, "--file", recipe, str(ROOT)]
    docker(*build, seconds=BUILD_SECONDS)
    stack = Stack(spark_image=IMAGE)
    try:
        stack.up()
        producer = Producer({"bootstrap.servers": stack.bootstrap})
        for number in range(RECORDS):
            producer.produce("seen", b"value %d" % number)
        assert producer.flush(30) == 0
        yield stack
    finally:
        stack.down()


def told_by(stack: Stack, *arguments: str) -> Any:
    """What a job printed as JSON; before it stands what the engine and Spark have to say."""
    text = stack.compose("--profile", "spark", "run", "--rm", "spark", *arguments, "--json")
    told, _ = json.JSONDecoder().raw_decode(text, text.index("\n{\n") + 1)
    return told


@pytest.mark.parametrize("engine", ["native", "spark"])
def test_times_are_audited_over_the_wire(stack: Stack, engine: str) -> None:
    audit = ["audit-time", "--bootstrap", "broker:19092", "--topic", "seen"]
    told = told_by(stack, *audit, "--engine", engine)
    assert told["outliers"] == 0
    (seen,) = told["partitions"]
    assert (seen["topic"], seen["partition"], seen["records"]) == ("seen", 0, RECORDS)


def test_a_broker_s_files_are_proved_where_they_lie(stack: Stack) -> None:
    (seen,) = told_by(stack, "verify", "--log-dirs", "/data")["partitions"]
    assert (seen["partition"], seen["verdict"]) == ("seen-0", "sound")
    assert seen["proved"]["records"] == RECORDS
