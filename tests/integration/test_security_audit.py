"""The security audit of a real broker: its file, its topic, and who is named in it."""

import json
import os
import re
import signal
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.test_sasl import PASSWORD, add_user, properties
from tests.integration.test_users_rights import LIMITED
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeFailed, NodeProcess

TOPICS = {"horolog.audit.topic": "times", "horolog.security.audit.topic": "security"}
QUICK = {"horolog.audit.interval.ms": "200"}
WRONG = "my-typed-secret"


@dataclass(frozen=True)
class Scene:
    node: NodeProcess
    file: Path
    settings: Path

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(each) for each in self.file.read_text().splitlines()]

    def until(self, found: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first line of this kind, which comes soon."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            for line in self.lines():
                if found(line):
                    return line
            time.sleep(0.05)
        raise AssertionError(f"not among {self.lines()}")

    def client(self, user: str, password: str = PASSWORD) -> dict[str, Any]:
        return {
            **properties(self.node.bootstrap, "SCRAM-SHA-256", user=user),
            "sasl.password": password,
        }


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    place = tmp_path_factory.mktemp("audit")
    for name in ("root", "bob", "carol"):
        add_user(place / "data", name, PASSWORD)
    file, settings = place / "audit.jsonl", place / "server.yaml"
    settings.write_text("max.connections.per.ip: 500\n")
    all_settings = {**LIMITED, **TOPICS, **QUICK, "horolog.security.audit.file": str(file)}
    options = ["--config", str(settings)]
    with start_broker(place / "data", all_settings, options=options) as node:
        scene = Scene(node, file, settings)
        admin = AdminClient(scene.client("root"))
        admin.create_topics([NewTopic("first", 1, 1)])["first"].result(20)
        yield scene


def test_a_change_names_who_made_it_in_a_file_of_its_owners(scene: Scene) -> None:
    admin = AdminClient(scene.client("root"))
    admin.create_topics([NewTopic("made", 2, 1)])["made"].result(20)
    line = scene.until(lambda each: each["resource"] == "made")
    assert (line["principal"], line["api"], line["outcome"]) == (
        "User:root", "CreateTopics", "done"
    )  # fmt: skip
    assert (line["listener"], line["host"]) == ("SASL_PLAINTEXT", "127.0.0.1")
    assert stat.S_IMODE(scene.file.stat().st_mode) == 0o600


def test_what_commands_changed_while_it_was_stopped_is_told(scene: Scene) -> None:
    added = [each for each in scene.lines() if each["api"] == "horolog users add"]
    assert [each["resource"] for each in added] == ["root", "bob", "carol"]
    assert all(each["principal"].startswith("System:") for each in added)
    assert not list((scene.file.parent / "data").glob("*audit*")), "once"


def test_a_denial_names_the_right_and_lists_are_none(scene: Scene) -> None:
    admin = AdminClient(scene.client("carol"))
    assert admin.list_topics(timeout=20).topics == {}
    with pytest.raises(KafkaException):
        admin.delete_topics(["secret-plans"])["secret-plans"].result(20)
    scene.until(lambda each: each["resource"] == "topic secret-plans")
    denied = [each for each in scene.lines() if each["principal"] == "User:carol"]
    assert {(each["operation"], each["resource"]) for each in denied} == {
        ("DESCRIBE", "topic secret-plans")
    }
    assert (denied[0]["event"], denied[0]["api"]) == ("denied", "DeleteTopics")
    assert denied[0]["rule"] == "no ACL allows it"


@pytest.mark.parametrize(("user", "told"), [("bob", "User:bob"), (WRONG, "User:ANONYMOUS")])
def test_a_failed_log_in_names_a_user_that_there_is(scene: Scene, user: str, told: str) -> None:
    with pytest.raises(KafkaException):
        AdminClient(scene.client(user, WRONG)).list_topics(timeout=2)
    line = scene.until(
        lambda each: each["event"] == "authentication_failed" and each["principal"] == told
    )
    assert line["resource"] == "SCRAM-SHA-256"
    assert WRONG not in scene.file.read_text()


def test_a_reload_is_told_with_old_and_new_values(scene: Scene) -> None:
    scene.settings.write_text("max.connections.per.ip: 600\n")
    os.kill(scene.node.pid, signal.SIGHUP)
    line = scene.until(lambda each: each["operation"] == "reload settings")
    assert (line["listener"], line["detail"]) == (
        "SIGHUP", "max.connections.per.ip=600 (was 500)"
    )  # fmt: skip


@pytest.mark.parametrize("topic", TOPICS.values())
def test_nobody_forges_an_audit_super_users_neither(scene: Scene, topic: str) -> None:
    scene_topics(scene, topic)
    errors: list[KafkaError | None] = []
    producer = Producer({**scene.client("root"), "message.timeout.ms": 20_000})
    producer.produce(topic, b"forged", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert [each.code() for each in errors if each] == [KafkaError.TOPIC_EXCEPTION]


def scene_topics(scene: Scene, topic: str) -> None:
    """Returns when the topic is there: the audit of times begins with a record."""
    admin, root = AdminClient(scene.client("root")), scene.client("root")
    if topic == "times" and topic not in admin.list_topics(timeout=20).topics:
        admin.create_topics([NewTopic("written", 1, 1)])["written"].result(20)
        producer = Producer(root)
        producer.produce("written", b"x")
        producer.flush(20)
    deadline = time.monotonic() + 30
    while topic not in admin.list_topics(timeout=20).topics:
        assert time.monotonic() < deadline, f"{topic} is not made"
        time.sleep(0.2)


def test_the_topic_has_what_the_file_has_for_who_may_read_it(scene: Scene) -> None:
    scene_topics(scene, "security")
    for user, expected in (("bob", 0), ("root", 1)):
        consumer = Consumer({**scene.client(user), "group.id": "g"})
        consumer.assign([TopicPartition("security", 0, 0)])
        message = consumer.poll(3 if user == "bob" else 20)
        found = message is not None and message.error() is None
        assert found == bool(expected), message and message.error()
        if found:
            assert json.loads(message.value()) in scene.lines()
        consumer.close()


def test_a_file_that_cannot_be_written_refuses_the_start(tmp_path: Path) -> None:
    wrong = {"horolog.security.audit.file": str(tmp_path / "none" / "audit")}
    with pytest.raises(NodeFailed) as refused, start_broker(tmp_path / "data", wrong):
        pass
    assert re.search(r"horolog\.security\.audit\.file: .*none/audit cannot be", str(refused.value))


def test_a_full_disk_of_the_audit_is_told_and_changes_are_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    settings = {"horolog.security.audit.file": "/dev/full"}
    with start_broker(tmp_path / "data", settings, log=log) as node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.create_topics([NewTopic("made", 1, 1)])["made"].result(20)
        deadline = time.monotonic() + 20
        while "security_audit_failed" not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    told = [json.loads(each) for each in log.read_text().splitlines() if each.startswith("{")]
    assert [each["resource"] for each in told if each["event"] == "admin_change"] == ["made"]
