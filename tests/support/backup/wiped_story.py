"""The story of a broker whose data directory is lost: filled, copied, wiped, restored, compared.

Topics of several kinds, groups, transactions, settings and access control, by real clients. Run by
a test with little data and by `scripts/soak wiped` with more: both compare everything, and measure
the time from the start of a process to its first answer with records.
"""

import json
import os
import subprocess
import time
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.backup.broker_view import BrokerView, client_of, view_of
from tests.support.clients.admin import Admin
from tests.support.tier.s3_server import S3Server, only_aws
from tests.support.worlds.broker_process import HOROLOG, own_environment, start_broker
from tests.support.worlds.node_process import NodeProcess
from tests.support.worlds.watched_broker import fetch_from

PLAIN, KEYED, PAID = "plain", "keyed", "paid"
PARTITIONS = {PLAIN: 2, KEYED: 1, PAID: 1}
GROUPS = ["readers", "payers"]
USER = "alice"
T0 = 1_790_000_000_000
VALUE_BYTES, KEYS = 1000, 50
SEGMENT_BYTES = 1024 * 1024
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "100",
}
TIER = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "100",
    "horolog.tier.compacted": "true",
    "horolog.tier.max.lag.ms": "300",
    "remote.fetch.max.wait.ms": "5000",
}
AT_REST = {"log.cleaner.enable": "false"}
"""Nothing changes a log by itself: two views can be compared."""


class Timings(NamedTuple):
    """Seconds from the start of a process to its first answer with records, and what it took."""

    full_start: float
    """Of a broker on the whole directory, after a clean stop."""
    restore: float
    restored_start: float

    @property
    def ratio(self) -> float:
        """The start on a restored directory, as a multiple of that on the whole one."""
        return self.restored_start / self.full_start


class WipedStory:
    """A broker, its directory, and the store."""

    def __init__(self, folder: Path, server: S3Server, *, has_tier: bool) -> None:
        """Nothing is started. `has_tier`: the store has everything without a back-up."""
        self.data = folder / "data"
        self._server = server
        self._has_tier = has_tier
        self._prefix = folder.name
        self._tier = {**TIER, "horolog.tier.url": server.url(self._prefix)} if has_tier else {}

    @property
    def tier_url(self) -> str:
        """The place of the tier."""
        return self._server.url(self._prefix)

    def start(self, **more: str) -> NodeProcess:
        """The broker on the directory. Underscores in names stand for dots."""
        settings = {**SETTINGS, **self._tier}
        settings |= {name.replace("_", "."): value for name, value in more.items()}
        with only_aws(self._server.environment):
            return start_broker(self.data, settings)

    def at_rest(self) -> NodeProcess:
        """As `start`; nothing changes by itself but for the tier's copies."""
        with only_aws(self._server.environment):
            return start_broker(self.data, {**SETTINGS, **self._tier, **AT_REST})

    def read_from(self, place: str) -> None:
        """From now on the broker has this place as its tier."""
        self._tier = {**TIER, "horolog.tier.url": place}

    # --- the commands ---

    def run(self, *arguments: str) -> Any:
        """A command with `--json`, as it is installed; its content."""
        with only_aws(self._server.environment):
            environment = own_environment() | {
                name: value for name, value in os.environ.items() if name.startswith("AWS_")
            }
        found = subprocess.run(
            [str(HOROLOG), *arguments, "--json"],
            env=environment, capture_output=True, timeout=600, check=False,
        )  # fmt: skip
        assert found.returncode == 0, found.stderr.decode()
        return json.loads(found.stdout)

    def back_up(self, place: str) -> int:
        """A run of the command; the bytes that it has sent."""
        content = self.run("backup", "--data-dir", str(self.data), "--to", place)
        assert not [each for each in content["partitions"] if each["damage"]]
        return sum(each["bytes_sent"] for each in content["partitions"])

    def wipe_and_restore(self, place: str, *more: str) -> float:
        """Seconds that the restore has taken."""
        rmtree(self.data)
        began = time.monotonic()
        self.run("restore", "--from", place, "--data-dir", str(self.data), *more)
        return time.monotonic() - began

    def first_answer(self, node_began: float, node: NodeProcess) -> float:
        """Seconds until the broker has served the first records of a partition."""
        with client_of(node) as client:
            while True:
                answer = fetch_from(client, topic=PLAIN, max_wait_ms=5000)
                found = answer.responses[0].partitions[0]
                if found.error_code == 0 and found.records:
                    return time.monotonic() - node_began

    # --- what clients do ---

    def make_topics(self, node: NodeProcess) -> None:
        """Topics of each kind, settings, access control, and a user."""
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        remote = {"remote.storage.enable": "true"} if self._has_tier else {}
        config = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1", **remote}
        keyed = {**config, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
        topics = [
            NewTopic(name, count, 1, config=keyed if name == KEYED else config)
            for name, count in PARTITIONS.items()
        ]
        for made in admin.create_topics(topics).values():
            made.result(30)
        change = ConfigEntry(
            "max.message.bytes", "2000000", incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ConfigResource.Type.TOPIC, PLAIN, incremental_configs=[change])
        admin.incremental_alter_configs([resource])[resource].result(30)
        acl = AclBinding(
            ResourceType.TOPIC, PLAIN, ResourcePatternType.LITERAL, f"User:{USER}", "*",
            AclOperation.READ, AclPermissionType.ALLOW,
        )  # fmt: skip
        admin.create_acls([acl])[acl].result(30)
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        user = UserScramCredentialUpsertion(USER, info, b"secret of tests")
        admin.alter_user_scram_credentials([user])[USER].result(30)

    def users(self, node: NodeProcess) -> list[str]:
        """Names of those who can log in."""
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        found: Any = admin.describe_user_scram_credentials()
        return sorted(found.result(30))

    def write(self, node: NodeProcess, first: int, count: int) -> None:
        """Records of all topics, some of them in transactions, and committed offsets."""
        producer = Producer(
            {"bootstrap.servers": node.bootstrap, "acks": "all", "linger.ms": 5,
             "enable.idempotence": True, "batch.num.messages": 20}
        )  # fmt: skip
        for number in range(first, first + count):
            value = b"%08d" % number + os.urandom(VALUE_BYTES // 2) + b"x" * (VALUE_BYTES // 2)
            at = T0 + number * 10 - number % 7 * 1000  # out of order
            producer.produce(
                PLAIN, value, partition=number % 2, timestamp=at, headers={"n": b"%d" % number}
            )
            keyed = None if number % 11 == 0 else value
            producer.produce(KEYED, keyed, key=b"key %d" % (number % KEYS), timestamp=at)
            producer.poll(0)
        assert producer.flush(120) == 0
        self._pay(node, first, count // 10 + 1)
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": GROUPS[0]})
        read = [TopicPartition(PLAIN, each, first // 2 + each) for each in range(2)]
        consumer.commit(offsets=read, asynchronous=False)
        consumer.close()

    def _pay(self, node: NodeProcess, first: int, count: int) -> None:
        """Transactions, each third one aborted; with offsets of a group."""
        producer = Producer(
            {"bootstrap.servers": node.bootstrap, "transactional.id": "payer", "linger.ms": 1}
        )
        producer.init_transactions(60)
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": GROUPS[1]})
        for at in range(first, first + count, 20):
            producer.begin_transaction()
            for number in range(at, at + 20):
                producer.produce(PAID, b"%08d" % number * 50, timestamp=T0 + number)
            offsets = [TopicPartition(PLAIN, 0, at)]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 60)
            if at // 20 % 3 == 2:
                producer.flush(60)  # what was not sent would not be aborted either
                producer.abort_transaction(60)
            else:
                producer.commit_transaction(60)
        consumer.close()

    def view(self, node: NodeProcess) -> BrokerView:
        """Everything that clients can learn."""
        return view_of(node, PARTITIONS, GROUPS)

    def wait_until_copied(self, node: NodeProcess) -> None:
        """Until the tier's store has all records, those of the broker's own topics too."""
        api, ends = Admin(node.facts["http"]), time.monotonic() + 120
        while True:
            left = [
                each
                for each in api.get("/api/tier", internal="true")["partitions"]
                if each["copied_end_offset"] < each["log_end_offset"]
            ]
            if not left:
                break
            assert time.monotonic() < ends, left
            time.sleep(0.2)
        time.sleep(1)  # a round more: the picture of topics and settings


def measured(story: WipedStory, place: str, *, is_downloaded: bool) -> tuple[Timings, NodeProcess]:
    """Wipes and restores; the times, and the broker on the restored directory.

    The whole directory was left by a clean stop. What is not downloaded is read from the place.
    """
    began = time.monotonic()
    with story.at_rest() as node:
        full = story.first_answer(began, node)
    took = story.wipe_and_restore(place, *(["--download"] if is_downloaded else []))
    if not is_downloaded:
        story.read_from(place)
    began = time.monotonic()
    node = story.at_rest()
    return Timings(full, took, story.first_answer(began, node)), node
