"""A data directory that an older version wrote: the image of today serves all that is in it.

The directory of tests/golden was written by the version of November 2026 and stopped cleanly: two
topics with settings, all codecs, idempotent producers, a quarantine, and a group's offsets.
"""

import gzip
import subprocess
from pathlib import Path

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.support.clients.container_clients import PATIENCE_SECONDS, read_all, written
from tests.support.clients.containers import Container, docker, fresh_name, image
from tests.support.ports import free_port

OLD = Path(__file__).resolve().parents[2] / "golden" / "horolog_2026_11_directory.tar.gz"
CODECS = ("none", "gzip", "lz4", "zstd", "snappy")
FIRST_MS = 1_790_000_000_000


def of_partition(partition: int) -> list[bytes]:
    return [f"{codec} {n}".encode() for codec in CODECS for n in range(100) if n % 2 == partition]


def started_on_the_old_directory(container: Container, port: int) -> None:
    published = f"HOROLOG_PUBLISHED_LISTENERS=PLAINTEXT://localhost:{port}"
    where = ["--publish", f"127.0.0.1:{port}:9092", "--env", published]
    docker("create", "--name", container.name, *where, image())
    copied = ["docker", "cp", "-", f"{container.name}:/data"]
    files = gzip.decompress(OLD.read_bytes())
    subprocess.run(copied, input=files, check=True, capture_output=True, timeout=60)
    docker("start", container.name)
    container.until_ready()


def test_what_an_older_version_wrote_is_served_and_goes_on() -> None:
    port = free_port()
    bootstrap = f"localhost:{port}"
    with Container(fresh_name()) as broker:
        started_on_the_old_directory(broker, port)
        for partition in (0, 1):
            found = messages(bootstrap, TopicPartition("orders", partition, 0), 250)
            assert [message.value() for message in found] == of_partition(partition)
            first = [message.timestamp()[1] - FIRST_MS for message in found[:3]]
            assert first == [partition, partition + 2, partition + 4]
        assert read_all(bootstrap, "orders.quarantine") == [b"from the future"]
        kept = messages(bootstrap, TopicPartition("state", 0, 80), 20)
        assert {message.key(): message.value() for message in kept} == {
            b"s%d" % n: b"snappy %d" % n for n in range(20)
        }
        assert committed(bootstrap) == [120, 7]
        assert setting(bootstrap, "orders", "horolog.timestamp.policy") == "quarantine"
        assert setting(bootstrap, "state", "cleanup.policy") == "compact"

        written(bootstrap, "orders", [b"new"])
        docker("restart", broker.name)
        broker.until_ready()
        assert read_all(bootstrap, "orders", 251) == [b"new"], "behind the one set aside"
        assert "sidecar_file_unreadable" not in broker.log
        assert "level=error" not in broker.log


def messages(bootstrap: str, place: TopicPartition, count: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "r"})
    consumer.assign([place])
    found: list[Message] = []
    while len(found) < count:
        came = consumer.consume(count - len(found), timeout=PATIENCE_SECONDS)
        assert came, f"{len(found)} of {count} came"
        found += came
    consumer.close()
    return found


def committed(bootstrap: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    places = [TopicPartition("orders", index) for index in (0, 1)]
    found = consumer.committed(places, timeout=PATIENCE_SECONDS)
    consumer.close()
    return [place.offset for place in found]


def setting(bootstrap: str, topic: str, key: str) -> str:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    value: str = admin.describe_configs([resource])[resource].result(PATIENCE_SECONDS)[key].value
    return value
