"""A broker started on what it must not start on: one line on standard error, the documented status.

1 bad settings, 2 directory or port not usable, 3 damage that cannot be mended. What can be mended
or ignored is, and the records are all there.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config.errors import ConfigError
from protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.errors import ErrorCode as Code
from protocol.records.batch import iter_headers
from storage.errors import StorageError
from tests.support.clients.wire import WireClient
from tests.support.disk.mounts import tmpfs
from tests.support.worlds.app import client_of, make_broker, running_broker
from tests.support.worlds.broker_process import HOROLOG
from tests.support.worlds.watched_broker import (
    MIB,
    WatchedBroker,
    fetch_from,
    produce_to,
    small_batch,
)

BAD_SETTINGS, NOT_USABLE, CORRUPT = 1, 2, 3
SECONDS_TO_REFUSE = 10


def serve(data_dir: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The broker's own answer; a broker that starts all the same fails the test by its timeout."""
    ports = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    return subprocess.run(
        [str(HOROLOG), "serve", "--data-dir", str(data_dir), *ports, *more],
        capture_output=True,
        text=True,
        timeout=SECONDS_TO_REFUSE,
        check=False,
    )


def assert_refused(result: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    assert result.returncode == status, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    (line,) = [each for each in result.stderr.splitlines() if each.startswith("horolog: ")]
    assert len(line) < 600
    for word in words:
        assert word in line


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that was stopped cleanly, with 20 records in each of two partitions."""
    data_dir = tmp_path_factory.mktemp("used") / "data"
    with WatchedBroker(data_dir) as broker:
        broker.make_topic("t", 2, retention_ms="123456789")
        with broker.client() as client:
            for partition in (0, 1):
                for _ in range(20):
                    produce_to(client, small_batch(), partition=partition)
    return data_dir


@pytest.fixture
def data_dir(used: Path, tmp_path: Path) -> Path:
    """A copy to do harm to."""
    return Path(shutil.copytree(used, tmp_path / "data"))


def write(name: str, content: str | bytes) -> Callable[[Path], None]:
    data = content if isinstance(content, bytes) else content.encode()
    return lambda directory: (directory / name).write_bytes(data) and None


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def do(directory: Path) -> None:
        text = (directory / name).read_text()
        assert old in text
        (directory / name).write_text(text.replace(old, new))

    return do


TOPICS, SETTINGS, IDS = "horolog-topics.json", "horolog-config.json", "horolog-producer-ids.json"
META = "meta.properties"


def topics_file(name: str, count: object) -> str:
    entry = {"id": "bHcxO0eYQqSZr0iYc7Ow5w", "partitions": count}
    return json.dumps({"format": 1, "topics": {name: entry}, "deleted": []})


FATAL: dict[str, tuple[Callable[[Path], None], str]] = {
    "meta of version 2": (edit(META, "version=1", "version=2"), META),
    "meta of another node": (edit(META, "node.id=1", "node.id=9"), "node 9"),
    "meta with a bad node": (edit(META, "node.id=1", "node.id=x"), META),
    "meta with a bad id": (edit(META, "directory.id=", "directory.id=??"), META),
    "meta is binary": (write(META, b"\xff\xfe\x00" * 50), META),
    "topics newer": (edit(TOPICS, '"format": 1', '"format": 2'), "format 2"),
    "topics empty": (write(TOPICS, ""), TOPICS),
    "topics cut": (write(TOPICS, '{"format": 1, "topics": {'), TOPICS),
    "topics is a list": (write(TOPICS, "[]"), TOPICS),
    "topics is binary": (write(TOPICS, b"\xff\x00\x80" * 40), TOPICS),
    "topics nested deeply": (write(TOPICS, "[" * 200_000), TOPICS),
    "topic outside": (write(TOPICS, topics_file("../../../evil", 1)), TOPICS),
    "topic with a slash": (write(TOPICS, topics_file("a/b", 1)), TOPICS),
    "topic with NUL": (write(TOPICS, topics_file("a\0b", 1)), TOPICS),
    "topic with -1 partitions": (write(TOPICS, topics_file("t", -1)), TOPICS),
    "topic with 10^9 partitions": (write(TOPICS, topics_file("t", 10**9)), TOPICS),
    "topic with half a partition": (write(TOPICS, topics_file("t", "many")), TOPICS),
    "another topic's directory": (
        write("t-1/partition.metadata", "version: 0\ntopic_id: bHcxO0eYQqSZr0iYc7Ow5w"),
        "t-1",
    ),
    "settings empty": (write(SETTINGS, ""), SETTINGS),
    "settings binary": (write(SETTINGS, b"\xff\x00\x80" * 40), SETTINGS),
    "settings newer": (write(SETTINGS, '{"format": 99}'), "horolog-config"),
    "producer ids empty": (write(IDS, ""), IDS),
    "producer ids binary": (write(IDS, b"\xff\x00\x80" * 40), IDS),
    "producer ids newer": (write(IDS, '{"format": 99, "reserved_below": 5}'), IDS),
}


@pytest.mark.parametrize("name", FATAL)
async def test_what_must_not_be_overwritten_ends_the_start(data_dir: Path, name: str) -> None:
    harm, word = FATAL[name]
    harm(data_dir)
    before = files(data_dir)
    broker = make_broker(data_dir)
    with pytest.raises((StorageError, ConfigError)) as refusal:
        await broker.start()
    assert word in str(refusal.value)
    assert len(str(refusal.value).splitlines()) == 1
    assert {name: data for name, data in files(data_dir).items() if name in before} == before


@pytest.mark.parametrize(
    "name", ["meta of version 2", "topic outside", "another topic's directory"]
)
def test_such_a_refusal_is_one_line_and_its_status(data_dir: Path, name: str) -> None:
    harm, word = FATAL[name]
    harm(data_dir)
    assert_refused(serve(data_dir), NOT_USABLE, word)


REWRITTEN = {".lock", ".kafka_cleanshutdown"}  # the mark may go: the next start looks closer then


def files(directory: Path) -> dict[str, bytes]:
    kept = [path for path in directory.rglob("*") if path.is_file() and path.name not in REWRITTEN]
    return {str(path.relative_to(directory)): path.read_bytes() for path in kept}


HARMLESS: dict[str, Callable[[Path], None]] = {
    "recovery points empty": write("recovery-point-offset-checkpoint", ""),
    "recovery points binary": write("recovery-point-offset-checkpoint", b"\xff" * 100),
    "recovery points lie": write("recovery-point-offset-checkpoint", "0\n1\nt 0 999999\n"),
    "recovery points below zero": write("recovery-point-offset-checkpoint", "0\n1\nt 0 -5\n"),
    "watermarks binary": write("replication-offset-checkpoint", b"\x80\xff" * 100),
    "log starts cut": write("log-start-offset-checkpoint", "0\n5\nt 0 0\n"),
    "log starts huge": write("log-start-offset-checkpoint", "0\n1\nt 0 " + "9" * 5000 + "\n"),
    "clean mark empty": write(".kafka_cleanshutdown", ""),
    "clean mark binary": write(".kafka_cleanshutdown", b"\xff\xfe"),
    "unknown file": write("who-are-you.txt", "?"),
    "unknown directory": lambda directory: (directory / "lost+found").mkdir(),
    "unknown name": lambda directory: (directory / "a b-c").mkdir(),
    "file named like a partition": write("t-7", "not a directory"),
    "unknown file in a partition": write("t-0/notes.txt", "?"),
    "odd partition number": lambda directory: (directory / "x-99999999999").mkdir(),
    "far partition number": lambda directory: (directory / "t-2000000000").mkdir(),
    "hostile partition name": lambda directory: (directory / "..-0").mkdir(),
    "odd log name": write("t-0/123.log", b"\0" * 10),
    "index gone": lambda directory: (directory / f"t-0/{'0' * 20}.index").unlink(),
    "index of rubbish": write(f"t-0/{'0' * 20}.index", b"\xff" * 77),
    "time index of rubbish": write(f"t-0/{'0' * 20}.timeindex", b"\xff" * 77),
    "zones of rubbish": write(f"t-0/{'0' * 20}.zones", b"\xff" * 777),
    "zones gone": lambda directory: (directory / f"t-0/{'0' * 20}.zones").unlink(missing_ok=True),
    "epochs of rubbish": write("t-0/leader-epoch-checkpoint", b"\xff" * 50),
    "epochs empty": write("t-0/leader-epoch-checkpoint", ""),
    "snapshot of rubbish": write(f"t-0/{'0' * 18}20.snapshot", b"\xff" * 50),
}


@pytest.mark.parametrize("unclean", [False, True], ids=["clean", "unclean"])
@pytest.mark.parametrize("name", HARMLESS)
async def test_what_can_be_mended_costs_no_record(data_dir: Path, name: str, unclean: bool) -> None:
    if unclean:
        (data_dir / ".kafka_cleanshutdown").unlink()
    HARMLESS[name](data_dir)
    async with running_broker(data_dir) as broker, client_of(broker) as client:
        for index in (0, 1):
            wanted = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=MIB)
            topics = [FetchTopic(topic="t", partitions=[wanted])]
            fetched = await client.call(FetchRequest(min_bytes=1, topics=topics), 12)
            (answer,) = fetched.responses[0].partitions
            assert (answer.error_code, answer.high_watermark) == (0, 20), answer
            assert len(offsets_in(answer.records)) == 20
            data = PartitionProduceData(index=index, records=small_batch())
            produced = [TopicProduceData(name="t", partition_data=[data])]
            request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=produced)
            stored = (await client.call(request, 9)).responses[0].partition_responses[0]
            assert (stored.error_code, stored.base_offset) == (0, 20)
        assert not broker.services.probes.crashes


def test_a_locked_directory_is_refused_while_the_other_goes_on(data_dir: Path) -> None:
    with WatchedBroker(data_dir) as broker:
        assert_refused(serve(data_dir), NOT_USABLE, "lock")
        assert_refused(serve(data_dir / "." / ".." / "data"), NOT_USABLE, "lock")
        broker.check_unharmed()


def test_a_file_in_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    assert_refused(serve(tmp_path / "data"), NOT_USABLE, str(tmp_path / "data"))
    assert_refused(serve(tmp_path / "data" / "below"), NOT_USABLE, str(tmp_path / "data"))
    assert (tmp_path / "data").read_text() == "not a directory"


def test_a_read_only_directory_is_refused(data_dir: Path, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk") as disk:
        shutil.copytree(data_dir, disk.path / "data")
        disk.remount("ro")
        assert_refused(serve(disk.path / "data"), NOT_USABLE, "ead-only")


def test_a_disk_that_is_full_at_the_start_is_read_and_later_written(
    data_dir: Path, tmp_path: Path
) -> None:
    with tmpfs(tmp_path / "disk") as disk:
        shutil.copytree(data_dir, disk.path / "data")
        disk.fill()
        log = tmp_path / "log"
        with WatchedBroker(disk.path / "data", log=log) as broker, broker.client() as client:
            assert fetch_from(client).responses[0].partitions[0].high_watermark == 20
            refused = produce_to(client, small_batch(b"x" * 900_000))
            assert refused.error_code == Code.KAFKA_STORAGE_ERROR
            disk.free()
            assert produced_again(client) == 20
            broker.check_unharmed()


def test_a_disk_that_fills_up_refuses_writes_only_until_it_is_freed(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk") as disk:
        broker = WatchedBroker(disk.path / "data", log=tmp_path / "log")
        with broker, broker.client() as client:
            broker.make_topic("t")
            acknowledged = [produce_to(client, small_batch()).base_offset for _ in range(10)]
            disk.fill()
            for acks in (1, -1, 1, -1):
                answer = produce_to(client, small_batch(b"x" * 9000), acks=acks)
                assert answer.error_code == Code.KAFKA_STORAGE_ERROR
            topic = CreatableTopic(name="more", num_partitions=1, replication_factor=1)
            made = client.call(CreateTopicsRequest(topics=[topic]), 7).topics[0]
            assert made.error_code == Code.KAFKA_STORAGE_ERROR
            assert len(records_of(client)) == 10
            assert broker.metric("horolog_request_errors_total", error="KAFKA_STORAGE_ERROR") == 5
            disk.free()
            acknowledged.append(produced_again(client))
            acknowledged.append(produce_to(client, small_batch(), acks=-1).base_offset)
            assert client.call(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
            assert acknowledged == list(range(12))
            assert len(records_of(client)) == 12
            broker.check_unharmed()
        with WatchedBroker(disk.path / "data", log=tmp_path / "log2") as again:
            with again.client() as client:
                assert len(records_of(client)) == 12
            again.check_unharmed()


def produced_again(client: WireClient) -> int:
    """The offset of the first batch that is taken once there is room; tried as clients do."""
    for _ in range(200):
        answer = produce_to(client, small_batch())
        if answer.error_code == 0:
            return int(answer.base_offset)
        assert answer.error_code == Code.KAFKA_STORAGE_ERROR
        time.sleep(0.05)
    raise AssertionError("no batch is taken although there is room")


def records_of(client: WireClient) -> list[int]:
    return offsets_in(fetch_from(client).responses[0].partitions[0].records)


def offsets_in(records: bytes | memoryview) -> list[int]:
    return [header.base_offset for _, header in iter_headers(memoryview(records))]


# -- flags, settings, ports


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--set", "no.such.key=1"], "no.such.key"),
        (["--set", "num.partitions=zero"], "num.partitions"),
        (["--set", "num.partitions=0"], "num.partitions"),
        (["--set", "num.partitions=-1"], "num.partitions"),
        (["--set", "num.partitions=99999999999999999999"], "num.partitions"),
        (["--set", "socket.request.max.bytes=-5"], "socket.request.max.bytes"),
        (["--set", "log.segment.bytes=1"], "segment.bytes"),
        (["--set", "compression.type=rar"], "compression.type"),
        (["--set", "novalue"], "novalue"),
        (["--set", "=1"], "--set"),
        (["--set", "listeners=FOO"], "listeners"),
        (["--set", "listeners=PLAINTEXT://127.0.0.1:99999"], "listeners"),
        (["--set", "log.dirs="], "log.dirs"),
        (["--http", "nonsense"], "http"),
    ],
)
def test_bad_settings_are_refused_in_one_line(
    tmp_path: Path, arguments: list[str], word: str
) -> None:
    assert_refused(serve(tmp_path / "data", *arguments), BAD_SETTINGS, word)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "text",
    [
        "num.partitions: [1, 2",
        "- just\n- a list",
        "\t\x00",
        "num.partitions: {a: b}",
        "just words",
        "num.partitions: 1\nnum.partitions: 2",
        "a: &a [*a]",
        "!!python/object/apply:os.system ['true']",
        "x: " + "[" * 5000,
        b"\xff\xfe\x80",
    ],
)
def test_bad_yaml_is_refused_in_one_line(tmp_path: Path, text: str | bytes) -> None:
    file = tmp_path / "server.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    result = serve(tmp_path / "data", "--config", str(file))
    assert_refused(result, BAD_SETTINGS, "server.yaml")


def test_a_settings_file_that_is_a_directory_is_refused(tmp_path: Path) -> None:
    assert_refused(serve(tmp_path / "data", "--config", str(tmp_path)), BAD_SETTINGS)


@pytest.mark.parametrize("flag", [["--listen", "0.0.0.0:1:2"], ["--nonsense"], ["--listen"]])
def test_bad_flags_end_without_a_traceback(tmp_path: Path, flag: list[str]) -> None:
    result = serve(tmp_path / "data", *flag)
    assert result.returncode in {1, 2}
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") < 12


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with WatchedBroker(tmp_path / "one") as broker:
        taken = broker.process.bootstrap
        assert_refused(serve(tmp_path / "two", "--listen", taken), NOT_USABLE, "cannot listen")
        http = broker.process.facts["http"]
        assert_refused(serve(tmp_path / "two", "--http", http), NOT_USABLE, "cannot listen")
        assert not (tmp_path / "two").exists()
        broker.check_unharmed()


def test_an_address_of_somebody_else_is_refused(tmp_path: Path) -> None:
    assert_refused(serve(tmp_path / "data", "--listen", "192.0.2.1:0"), NOT_USABLE, "192.0.2.1")


@pytest.fixture(autouse=True)
def nothing_outside(tmp_path: Path) -> Iterator[None]:
    yield
    assert not list(tmp_path.parent.glob("evil*"))
