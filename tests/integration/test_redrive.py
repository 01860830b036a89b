"""Dead letters sent back in a real process: what clients read then, after kill -9 too."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from broker.cli.main import main
from protocol.apis import create_topics, incremental_alter_configs, share_acknowledge
from protocol.apis.delete_groups import DeleteGroupsRequest
from tests.integration.test_share_groups import beat, fetched
from tests.support.clients.admin import Admin
from tests.support.clients.wire import WireClient
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.handler_world import altered

GROUP_KIND, SET = 32, 0
OLD_MS = 1_700_000_000_000
REJECT = 3
PATIENCE = 60
TOKEN = "a-token-of-some-length"


@contextmanager
def running(data_dir: Path) -> Iterator[tuple[Any, WireClient]]:
    """A broker that takes changes over HTTP from who has the token."""
    file = data_dir.with_name("token")
    file.write_text(TOKEN)
    file.chmod(0o600)
    settings = {"offsets.topic.num.partitions": "2", "horolog.http.token.file": str(file)}
    with start_broker(data_dir, settings) as process:
        host, port = process.bootstrap.rsplit(":", 1)
        with WireClient(host, int(port)) as client:
            yield process, client


def make_topics(client: WireClient) -> None:
    enabled = create_topics.CreatableTopicConfig(
        name="errors.deadletterqueue.group.enable", value="true"
    )
    topics = [
        create_topics.CreatableTopic(name="t", num_partitions=1, replication_factor=1),
        create_topics.CreatableTopic(
            name="dlq.t", num_partitions=1, replication_factor=1, configs=[enabled]
        ),
    ]
    client.call(create_topics.CreateTopicsRequest(topics=topics), 7)
    settings = [
        ("errors.deadletterqueue.topic.name", SET, "dlq.t"),
        ("errors.deadletterqueue.copy.record.enable", SET, "true"),
        ("share.auto.offset.reset", SET, "earliest"),
    ]
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[altered(GROUP_KIND, "g", settings)]
    )
    (answer,) = client.call(request, 1).responses
    assert answer.error_code == 0, answer


def reject_all(client: WireClient) -> None:
    """A member reads all there is, and rejects it."""
    answer = beat(client, "a", 0, "t")
    while not (answer.assignment and answer.assignment.topic_partitions):
        answer = beat(client, "a", answer.member_epoch, "t")  # it is decided a second later, or so
    (part,) = answer.assignment.topic_partitions
    epoch, got = 0, []
    while not got:
        answer = fetched(client, part.topic_id, epoch)
        got = [each.acquired_records for each in answer.responses[0].partitions]
        epoch += 1
    batches = [
        share_acknowledge.AcknowledgementBatch(
            first_offset=each.first_offset, last_offset=each.last_offset,
            acknowledge_types=[REJECT],
        )
        for each in got[0]
    ]  # fmt: skip
    asked = share_acknowledge.ShareAcknowledgePartition(
        partition_index=0, acknowledgement_batches=batches
    )
    topic = share_acknowledge.ShareAcknowledgeTopic(topic_id=part.topic_id, partitions=[asked])
    request = share_acknowledge.ShareAcknowledgeRequest(
        group_id="g", member_id="a", share_session_epoch=epoch, topics=[topic]
    )
    answer = client.call(request, 2)
    assert answer.responses[0].partitions[0].error_code == 0, answer
    assert beat(client, "a", -1).error_code == 0


def read(bootstrap: str, count: int) -> list[tuple[Any, ...]]:
    """The records of `t` by a client of librdkafka."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
    found: list[tuple[Any, ...]] = []

    def has_all() -> bool:
        message = consumer.poll(1)
        if message is not None:
            assert message.error() is None
            _, at = message.timestamp()
            found.append((message.offset(), at, message.key(), message.value(), message.headers()))
        return len(found) >= count

    try:
        until(has_all, every=0)
    finally:
        consumer.close()
    return found


def test_letters_go_back_once_with_their_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: str, status: int = 0) -> str:
        assert main(("queues", "redrive", "g", *arguments)) == status
        return capsys.readouterr().out

    monkeypatch.setenv("HOROLOG_HTTP_TOKEN", TOKEN)
    headers = [("own", b"header")]
    with running(tmp_path / "data") as (process, client):
        monkeypatch.setenv("HOROLOG_HTTP", process.facts["http"])
        make_topics(client)
        producer = Producer({"bootstrap.servers": process.bootstrap, "linger.ms": 50})
        for number in range(3):
            value = b"%d" % number
            producer.produce("t", value, b"key", timestamp=OLD_MS + number, headers=headers)
        assert producer.flush(PATIENCE) == 0
        reject_all(client)
        assert "3 in dlq.t that no redrive has looked at" in said()
        assert "1 letter of dlq.t sent back." in said("--most", "1", "--execute")
        answer = json.loads(said("--execute", "--json"))
        assert (answer["sent"], answer["left"], answer["stopped"]) == (2, 0, None)
        assert "0 letters of dlq.t sent back." in said("--execute")
        found = read(process.bootstrap, 6)
        assert [(at, key, value) for _, at, key, value, _ in found[3:]] == [
            (OLD_MS + number, b"key", b"%d" % number) for number in range(3)
        ]
        assert [each[-1] for each in found[3:]] == [headers] * 3
        with urlopen(f"http://{process.facts['http']}/metrics", timeout=PATIENCE) as answer:
            assert b"horolog_share_letters_redriven_total 3.0" in answer.read()
        process.kill()
    with running(tmp_path / "data") as (process, client):
        monkeypatch.setenv("HOROLOG_HTTP", process.facts["http"])
        assert beat(client, "b", 0, "t").error_code == 0  # its groups are read
        assert "0 letters of dlq.t sent back." in said("--execute")
        assert beat(client, "b", -1).error_code == 0
        reject_all(client)
        assert "3 in dlq.t that no redrive has looked at" in said()
        assert "0 in dlq.t" not in said("--execute")
        assert len(read(process.bootstrap, 9)) == 9


def test_what_cannot_be_redriven_is_refused(tmp_path: Path) -> None:
    with running(tmp_path / "data") as (process, client):
        admin, headers = Admin(process.facts["http"]), {"Authorization": f"Bearer {TOKEN}"}
        path = "/api/share-groups/g/redrive"
        assert admin.ask("POST", path, headers).status == 404
        topic = create_topics.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
        assert beat(client, "a", 0, "t").error_code == 0
        for query, status, code in (
            ("", 409, "no_letters"), ("?letters=t", 409, "no_letters"),
            ("?letters=dlq.none", 404, "unknown_topic"), ("?limit=0", 400, "bad_parameter"),
            ("?seconds=31", 400, "bad_parameter"),
        ):  # fmt: skip
            refused = admin.ask("POST", path + query, headers)
            assert (refused.status, refused.content["error"]["code"]) == (status, code), query


def test_letters_of_a_group_that_is_gone_can_still_be_sent_back(tmp_path: Path) -> None:
    with running(tmp_path / "data") as (process, client):
        admin, headers = Admin(process.facts["http"]), {"Authorization": f"Bearer {TOKEN}"}
        path = "/api/share-groups/g/redrive"
        make_topics(client)
        producer = Producer({"bootstrap.servers": process.bootstrap})
        producer.produce("t", b"v", timestamp=OLD_MS)
        assert producer.flush(PATIENCE) == 0
        reject_all(client)
        (gone,) = client.call(DeleteGroupsRequest(groups_names=["g"]), 2).results
        assert gone.error_code == 0
        assert admin.get("/api/groups")["groups"] == []
        assert admin.ask("POST", path, headers).content["sent"] == 1
        other = admin.ask("POST", "/api/share-groups/horolog.redrive.g/redrive", headers)
        assert (other.status, other.code) == (409, "no_share_group")
