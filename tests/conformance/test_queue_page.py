"""The workers on the page about queues do what the page says."""

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic
from tests.support.clients import java_programs
from tests.support.clients.go_programs import built_program, go
from tests.support.worlds.broker_process import start_broker

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks" / "queues.md"
PATIENCE_SECONDS = 60

GO = Path(__file__).parent / "go"

pytestmark = pytest.mark.timeout(300)
with_java = pytest.mark.skipif(not java_programs.available(), reason="needs Java and Maven")
with_go = pytest.mark.skipif(go() is None, reason="there is no Go 1.26 here")


@pytest.fixture(params=[pytest.param("java", marks=with_java), pytest.param("go", marks=with_go)])
def worker(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The command of the page's program, compiled."""
    found = re.search(rf"```{request.param}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return (java_worker if request.param == "java" else go_worker)(found[1], tmp_path)


def java_worker(source: str, into: Path) -> list[str]:
    (into / "Worker.java").write_text(source)
    jars = f"{java_programs.client_jars()}/*"
    compile_it = ["javac", "-cp", jars, "-d", str(into), str(into / "Worker.java")]
    subprocess.run(compile_it, check=True, capture_output=True)
    return ["java", *java_programs.SMALL, "-cp", f"{jars}:{into}", "Worker"]


def go_worker(source: str, into: Path) -> list[str]:
    folder = into / "worker"
    folder.mkdir()
    (folder / "main.go").write_text(source)
    for name in ("go.mod", "go.sum"):
        shutil.copy(GO / name, folder)
    return [str(built_program(folder))]


def test_a_worker_of_the_page_works(worker: list[str], tmp_path: Path) -> None:
    with start_broker(tmp_path / "data") as node:
        create_topic(AdminClient({"bootstrap.servers": node.bootstrap}), "orders", 2)
        log = tmp_path / "worker.log"
        with log.open("wb") as said:
            process = subprocess.Popen([*worker, node.bootstrap], stdout=said, stderr=said)
        try:
            producer = Producer({"bootstrap.servers": node.bootstrap})
            ends = time.monotonic() + PATIENCE_SECONDS
            while "difficult 2, delivery 2" not in log.read_text():
                assert time.monotonic() < ends, log.read_text()[-2000:]
                assert process.poll() is None, log.read_text()[-2000:]
                for order in ("easy 1", "difficult 2"):  # the group begins with what comes next
                    producer.produce("orders", order)
                producer.flush(10)
                time.sleep(1)
        finally:
            process.kill()
            process.wait()
        text = log.read_text()
        assert "easy 1, delivery 1" in text
        assert "difficult 2, delivery 1" in text
        assert "difficult 2, delivery 3" not in text
