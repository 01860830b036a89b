"""State of an earlier release: its settings file and data directory, and its answers.

`python -m tests.support.histories.earlier_release HOROLOG` writes the files in
tests/golden/earlier with the broker of that command: a directory that was stopped cleanly, one that
was killed with a transaction open, and what that same broker then tells clients of each.
"""

import json
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from protocol.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from tests.support.clients.admin import Admin
from tests.support.histories.earlier_answers import answers, connected
from tests.support.worlds.broker_process import own_environment
from tests.support.worlds.node_process import NodeProcess

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "earlier"
SETTINGS = FOLDER / "server.yaml"
STATES = ("stopped", "killed")
WRITTEN_AT, AGAIN_AT, READ_AT = (f"2026-11-23T00:{minute}:00Z" for minute in ("00", "05", "30"))
WRITTEN_MS = 1795392000000
PATIENCE_SECONDS = 30
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def started(horolog: str | Path, data: Path, clock: str) -> NodeProcess:
    """A broker on `data`, with the settings file and a clock that starts at `clock`."""
    command = [str(horolog), "serve", "--config", str(SETTINGS), "--data-dir", str(data)]
    command += ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--test-clock", clock]
    log = data.with_name(f"{data.name}.log")
    environment = own_environment()
    return NodeProcess(command, log, ready_within_seconds=60, environment=environment)


def unpacked(state: str, into: Path) -> Path:
    """The data directory of a state."""
    with tarfile.open(FOLDER / f"{state}.tar.gz") as packed:
        packed.extractall(into, filter="data")
    return into / "data"


def served_now(broker: NodeProcess) -> Mapping[str, object]:
    """Answers of the broker to clients, as JSON has them, once no transaction is open any more."""
    admin = Admin(broker.facts["http"])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while admin.get("/api/transactions")["open"]:
        assert time.monotonic() < deadline, "a transaction stays open"
        time.sleep(0.2)
    found: Mapping[str, object] = json.loads(json.dumps(answers(broker.bootstrap, WRITTEN_MS)))
    return found


def expected(state: str) -> Mapping[str, object]:
    """Answers of the release that wrote the state."""
    found: Mapping[str, object] = json.loads((FOLDER / f"{state}.json").read_text())
    return found


def transact(
    bootstrap: str, name: str, count: int, *, commit: bool | None, group: str = ""
) -> Producer:
    """A transaction over topic txn, and offsets of a group; left open when `commit` is None."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    for n in range(count):
        at = WRITTEN_MS - 500_000 + n
        producer.produce("txn", b"%d" % n, name.encode(), partition=n % 2, timestamp=at)
    producer.flush(PATIENCE_SECONDS)
    if group:
        consumer = joined(bootstrap, group, "plain")
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition("plain", 0, count)], metadata)
        consumer.close()
    if commit is not None:
        (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_SECONDS)
    return producer


def joined(bootstrap: str, group: str, topic: str, protocol: str = "classic") -> Consumer:
    """A member of a group that has its partitions and a record."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "group.protocol": protocol,
    })  # fmt: skip
    consumer.subscribe([topic])
    assert consumer.consume(1, PATIENCE_SECONDS)
    return consumer


def written(
    bootstrap: str, topic: str, count: int, *, keys: int = 1000, codec: str = "none", first: int = 0
) -> None:
    """Idempotent records a tenth of a second apart, alternately to two partitions."""
    producer = Producer({
        "bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True,
    })  # fmt: skip
    for n in range(first, first + count):
        producer.produce(
            topic, b"value %d " % n * 5, b"k%d" % (n % keys), partition=n % 2,
            timestamp=WRITTEN_MS - 1_000_000 + n * 100, headers=[("h", b"%d" % n)],
        )  # fmt: skip
    assert producer.flush(PATIENCE_SECONDS) == 0


def fill(bootstrap: str) -> None:
    """Topics of every kind, records of every codec, transactions, groups, settings and quotas."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    compacted = {"cleanup.policy": "compact", "segment.ms": "2000", "max.compaction.lag.ms": "3000"}
    arrival = {"message.timestamp.type": "LogAppendTime"}
    topics = [
        NewTopic("plain", 2), NewTopic("txn", 2), NewTopic("gone", 2),
        NewTopic("compacted", 2, config=compacted), NewTopic("arrival", 2, config=arrival),
    ]  # fmt: skip
    done(admin.create_topics(topics))
    for number, codec in enumerate(CODECS):
        written(bootstrap, "plain", 100, codec=codec, first=number * 100)
    written(bootstrap, "compacted", 300, keys=7)
    written(bootstrap, "gone", 10)
    written(bootstrap, "arrival", 20)
    for number in range(4):
        transact(bootstrap, f"tx-{number % 3}", 20 + number, commit=number % 2 == 0)
    transact(bootstrap, "tx-offsets", 5, commit=True, group="of-a-transaction")
    transact(bootstrap, "tx-offsets", 7, commit=False, group="of-a-transaction")
    for group, protocol in (("classic", "classic"), ("modern", "consumer")):
        consumer = joined(bootstrap, group, "plain", protocol)
        consumer.commit(offsets=[TopicPartition("plain", 0, 42)], asynchronous=False)
        consumer.close()
    done(admin.delete_records([TopicPartition("plain", 1, 17)]))
    alter(admin, ResourceType.TOPIC, "plain", "retention.ms", "345600000")
    alter(admin, ResourceType.BROKER, "1", "log.retention.ms", "360000000")
    done(admin.delete_topics(["gone"]))
    entity = [EntityData(entity_type="client-id", entity_name="slow")]
    quota = [OpData(key="producer_byte_rate", value=123_456.0)]
    with connected(bootstrap) as client:
        entry = EntryData(entity=entity, ops=quota)
        assert client.call(AlterClientQuotasRequest(entries=[entry]), 1).entries[0].error_code == 0


def alter(admin: AdminClient, kind: ResourceType, name: str, key: str, value: str) -> None:
    """Sets one setting of a topic or broker."""
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    done(admin.incremental_alter_configs([resource]))


def done(futures: Mapping[Any, "Future[Any]"]) -> None:
    """Waits for answers of an admin client; raises the first error."""
    for each in futures.values():
        each.result(PATIENCE_SECONDS)


def main(horolog: str) -> int:
    """Writes all files with that broker."""
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch, "data")
        data.mkdir()
        with started(horolog, data, WRITTEN_AT) as broker:
            fill(broker.bootstrap)
            time.sleep(8)  # compaction
            assert broker.stop() == 0
        pack(data, "stopped")
        with started(horolog, data, AGAIN_AT) as broker:
            written(broker.bootstrap, "plain", 50, codec="zstd", first=500)
            transact(broker.bootstrap, "tx-0", 10, commit=True)
            is_open = transact(broker.bootstrap, "tx-open", 9, commit=None)
            written(broker.bootstrap, "plain", 30, first=550)
            broker.kill()
            del is_open
        pack(data, "killed")
    for state in STATES:
        with tempfile.TemporaryDirectory() as scratch:
            with started(horolog, unpacked(state, Path(scratch)), READ_AT) as broker:
                text = json.dumps(served_now(broker), indent=1, sort_keys=True)
                broker.stop()
            (FOLDER / f"{state}.json").write_text(f"{text}\n")
    return 0


def pack(data: Path, state: str) -> None:
    """The directory as an archive, without the ballast, which holds nothing.

    Its files are as old as the broker's clock says: their times are compared at a start.
    """

    def dated(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime = WRITTEN_MS // 1000
        return member

    copy = data.with_name(state)
    shutil.copytree(data, copy, ignore=shutil.ignore_patterns("horolog-ballast"))
    with tarfile.open(FOLDER / f"{state}.tar.gz", "w:gz") as packed:
        packed.add(copy, "data", filter=dated)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
