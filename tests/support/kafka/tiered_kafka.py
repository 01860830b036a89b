"""A real Kafka with a tier: files in a directory, by LocalTieredStorage of its own tests."""

import subprocess
from pathlib import Path

from tests.support.authorization.record import kafka_version
from tests.support.kafka.kafka_oracle import SCRIPT

CACHE = SCRIPT.parents[1] / ".cache" / "kafka" / "tiered"


def storage_test_jar() -> Path:
    """The jar of Kafka's storage tests; Maven fetches it when it is not there yet."""
    version = kafka_version()
    jar = CACHE / f"kafka-storage-{version}-test.jar"
    if not jar.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        artifact = f"-Dartifact=org.apache.kafka:kafka-storage:{version}:jar:test"
        subprocess.run(
            ["mvn", "--batch-mode", "--quiet", "dependency:copy", artifact, "-DoutputDirectory=."],
            cwd=CACHE, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=110,
        )  # fmt: skip
    return jar


def tier_settings(directory: Path) -> dict[str, str]:
    """A tier below `directory`, for `start_kafka`."""
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": (
            "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
        ),
        "remote.log.storage.manager.class.path": str(storage_test_jar()),
        "rsm.config.dir": str(directory),
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    }
