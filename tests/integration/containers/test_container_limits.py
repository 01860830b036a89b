"""A container with little: a full disk refuses writes and nothing else; 256 MiB are enough."""

from confluent_kafka.admin import AdminClient

from tests.support.clients.container_clients import Load, read_all, written
from tests.support.clients.containers import Container, until
from tests.support.ports import free_port

SMALL_DISK = "--tmpfs=/data:size=24m,uid=10092,gid=10092,mode=0700"
CAPPED = ("--memory=256m", "--memory-swap=256m")
LOAD_RECORDS = 150_000


def started(*options: str) -> tuple[Container, str]:
    port = free_port()
    published = f"HOROLOG_PUBLISHED_LISTENERS=PLAINTEXT://localhost:{port}"
    where = ["--publish", f"127.0.0.1:{port}:9092", "--env", published]
    return Container.started(*where, *options), f"localhost:{port}"


def test_on_a_full_disk_reading_goes_on_and_writing_resumes_with_room() -> None:
    container, bootstrap = started(SMALL_DISK, "--env", "KAFKA_LOG_SEGMENT_DELETE_DELAY_MS=0")
    with container as broker:
        broker.until_ready()
        broker.execute("sh", "-c", "head -c 4000000 /dev/zero >/data/spare")
        written(bootstrap, "kept", [b"before"])
        load = Load(bootstrap, "much", size=10_000)
        until("a refusal", lambda: load.refused)
        load.stop()
        assert read_all(bootstrap, "kept") == [b"before"]
        found = {value.split(b" ")[0] for value in read_all(bootstrap, "much")}
        assert load.acknowledged <= found

        broker.execute("rm", "/data/spare")
        written(bootstrap, "much", [b"resumed"])
        assert read_all(bootstrap, "much", len(found) - 1)[-1] == b"resumed"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.delete_topics(["much"])["much"].result(30)
        written(bootstrap, "kept", [b"after"])
        assert read_all(bootstrap, "kept") == [b"before", b"after"]
        assert broker.log.count("horolog ready") == 1


def test_256_mib_are_enough_under_load() -> None:
    container, bootstrap = started(*CAPPED)
    with container as broker:
        broker.until_ready()
        loads = [Load(bootstrap, f"load-{number}", burst=1000) for number in range(3)]
        for load in loads:
            until("records", lambda load=load: len(load.acknowledged) > LOAD_RECORDS / 3)
            load.stop()
        for number, load in enumerate(loads):
            assert len(read_all(bootstrap, f"load-{number}")) >= len(load.acknowledged)
        assert not broker.state["OOMKilled"]
        assert broker.state["Running"]
