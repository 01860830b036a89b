"""In the place of Kafka's images: what Testcontainers does, in its modules for Java and Python.

Both make the container with Kafka's variables and a command that waits for a script, learn the port
of the host, copy the script in, which ends in the image's own start script, and wait for words that
Kafka's log has.
"""

import io
import re
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.support.clients.container_clients import read_all, written
from tests.support.clients.containers import IMAGE, Container, docker, fresh_name, until

COMMON = {
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
    "CONTROLLER:PLAINTEXT",
    "KAFKA_NODE_ID": "1",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
}
OF_APACHE_KAFKA = {
    **COMMON,
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
}
OF_PYTHON = {
    **COMMON,
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094",
    "KAFKA_BROKER_ID": "1",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "10000000",
}
SCRIPT_OF_APACHE_KAFKA = """\
#!/bin/bash
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{port},BROKER://$(hostname):9093
/etc/kafka/docker/run
"""
SCRIPT_OF_PYTHON = """\
#!/bin/bash
sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
echo 'kafka-storage format -t id -c /etc/kafka/kafka.properties' >> /etc/confluent/docker/configure
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{port},BROKER://$(hostname -i):9092
. /etc/confluent/docker/bash-config
/etc/confluent/docker/configure
/etc/confluent/docker/launch
"""


@dataclass(frozen=True)
class Module:
    """What one of its modules does."""

    variables: Mapping[str, str]
    port: int
    script: str
    command: str
    text: str
    words: str


JAVA = Module(
    OF_APACHE_KAFKA,
    9092,
    "/tmp/testcontainers_start.sh",
    "/tmp/testcontainers_start.sh",
    SCRIPT_OF_APACHE_KAFKA,
    r".*Transitioning from RECOVERY to RUNNING.*",
)
PYTHON = Module(
    OF_PYTHON,
    9093,
    "/tc-start.sh",
    "sh /tc-start.sh",
    SCRIPT_OF_PYTHON,
    r".*Kafka Server started.*",
)


@pytest.mark.parametrize("module", [JAVA, PYTHON], ids=["java-apache-kafka", "python-kraft"])
def test_testcontainers_starts_it(module: Module) -> None:
    with Container(fresh_name()) as broker:
        options = [part for each in module.variables.items() for part in ("--env", "=".join(each))]
        wait = f"while [ ! -f {module.script} ]; do sleep 0.1; done; {module.command}"
        where = ["--detach", "--name", broker.name, "--publish", f"127.0.0.1::{module.port}"]
        docker("run", *where, *options, IMAGE, "sh", "-c", wait)
        port = docker("port", broker.name, str(module.port)).rpartition(":")[2].strip()
        copy_in(broker, module.script, module.text.format(port=port))
        until(module.words, lambda: re.search(module.words, broker.log))
        written(f"localhost:{port}", "tc", [b"one"])
        assert read_all(f"localhost:{port}", "tc") == [b"one"]
        assert COMMON["CLUSTER_ID"] in broker.execute("cat", "/data/meta.properties")


def copy_in(container: Container, path: str, text: str) -> None:
    """As the engine's archive call does it: owned by root, executable."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo(path.lstrip("/"))
        entry.size, entry.mode = len(text), 0o777
        archive.addfile(entry, io.BytesIO(text.encode()))
    command = ["docker", "cp", "-", f"{container.name}:/"]
    subprocess.run(command, input=packed.getvalue(), check=True, capture_output=True, timeout=60)
