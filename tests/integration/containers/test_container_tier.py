"""The profile `tier`: one command starts a broker and the object store that its segments go to.

The store is SeaweedFS of the package registry, in an image made here: the program of the image that
the profile names, without an image registry.
"""

import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.tier.test_tiered_broker import EARLIEST_LOCAL, offset_of
from tests.support.clients.containers import (
    BASE,
    ROOT,
    Container,
    Stack,
    compose_command,
    docker,
    until,
)

STORE = "horolog-test-object-store"
RECIPE = f"""\
FROM {BASE}
COPY weed /usr/bin/weed
ENTRYPOINT ["/usr/bin/weed"]
"""
BLOCK = re.compile(
    r"<!-- executed by tests/integration/containers/test_container_tier.py -->\n```sh\n(.*?)```",
    re.DOTALL,
)
RECORDS, VALUE_BYTES = 6000, 1000
CONFIG = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.bytes": str(1 << 20),
    "retention.ms": "-1",
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if not compose_command():
        pytest.skip("neither `docker compose` nor `docker-compose` is there")
    weed = Path(sysconfig.get_path("scripts")) / "weed"
    if not weed.exists():
        pytest.skip("SeaweedFS is not published for this machine")
    context = tmp_path_factory.mktemp("store")
    shutil.copy(weed, context)
    (context / "Dockerfile").write_text(RECIPE)
    docker("build", "--tag", STORE, str(context), seconds=300)
    stack = Stack(store_image=STORE)
    try:
        (block,) = BLOCK.findall((ROOT / "docs/tasks/tiered-storage.md").read_text())
        assert block == "docker compose --profile tier up --detach tiered\n"
        stack.compose("--profile", "tier", "up", "--detach", "--no-build", "tiered")
        until("a healthy broker", lambda: broker_of(stack).health == "healthy")
        yield stack
    finally:
        print(stack.compose("--profile", "tier", "logs", "--no-color", check=False)[-8000:])
        stack.compose("--profile", "tier", "down", "--volumes", "--timeout", "1", check=False)


def broker_of(stack: Stack) -> Container:
    return Container(stack.compose("--profile", "tier", "ps", "-q", "tiered").split()[-1])


def read_all(bootstrap: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition("t", 0, 0)])
    for number in range(RECORDS):
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        value = message.value()
        assert value is not None
        assert (message.offset(), int(value)) == (number, number)
    consumer.close()


def test_a_topic_outgrows_the_disk_and_comes_back_after_a_restart(stack: Stack) -> None:
    bootstrap = f"localhost:{stack.tier_port}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", 1, 1, config=CONFIG)])["t"].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce("t", b"%0*d" % (VALUE_BYTES, number))
        producer.poll(0)
    assert producer.flush(60) == 0

    def first_on_disk() -> int:
        return offset_of(bootstrap, "t", EARLIEST_LOCAL)[1]

    until("segments in the store alone", lambda: first_on_disk() > RECORDS // 3, 120)
    read_all(bootstrap)
    stack.compose("--profile", "tier", "restart", "tiered")
    until("a healthy broker", lambda: broker_of(stack).health == "healthy")
    read_all(bootstrap)


def test_the_store_is_not_for_the_host(stack: Stack) -> None:
    store = Container(stack.compose("--profile", "tier", "ps", "-q", "object-store").split()[-1])
    ports = subprocess.run(
        ["docker", "port", store.name], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    assert not ports
