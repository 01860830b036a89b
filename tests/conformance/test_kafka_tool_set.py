"""Each of Kafka's command-line tools that an operator has, run once against the broker and judged.

Topics, settings and groups in their everyday use are in test_kafka_tools.py and
test_group_tools.py; here is the rest of the set.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.conformance.conftest import MakeTopic, create_topic
from tests.conformance.samples import FIRST_TIME_MS, samples
from tests.conformance.test_confluent_client import produce
from tests.support.kafka.kafka_oracle import CONFIGS_TOOL, OFFSETS_TOOL, available, run_tool

EXERCISES = {
    "Kafka's command-line tools": "api-versions, features, cluster, get-offsets, delete-records, "
    "log-dirs, leader-election, reassign-partitions, configs (quotas), producer-perf, "
    "consumer-perf, verifiable-producer, verifiable-consumer",
}

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
TOOLS = "org.apache.kafka.tools"


def run(tool: str, bootstrap: str, *arguments: str) -> str:
    return run_tool(f"{TOOLS}.{tool}", "--bootstrap-server", bootstrap, *arguments)


def events(printed: str) -> dict[str, list[Any]]:
    """What a verifiable client says, a JSON object a line, by the name of the event."""
    found: dict[str, list[Any]] = {}
    for line in printed.splitlines():
        said = json.loads(line)
        found.setdefault(said["name"], []).append(said)
    return found


def test_api_versions_are_those_that_kafka_knows(bootstrap: str) -> None:
    listed = run("BrokerApiVersionsCommand", bootstrap)
    rows = re.findall(r"^\t(\w+)\((\d+)\): (.+?)(?: \[usable: (\d+)\])?,?$", listed, re.MULTILINE)
    served = {name: usable for name, _, span, usable in rows if span != "UNSUPPORTED"}
    assert {"Produce", "Fetch", "ListOffsets", "ElectLeaders", "OffsetCommit"} <= set(served)
    assert all(served.values()), "each has a version that the tool can use"
    assert "UNKNOWN" not in listed


def test_features_are_those_of_the_version_that_is_resembled(bootstrap: str) -> None:
    described = run("FeatureCommand", bootstrap, "describe")
    assert re.search(r"metadata\.version.*FinalizedVersionLevel: 4\.3-IV0", described), described


def test_the_cluster_has_an_id_and_one_unfenced_broker(bootstrap: str) -> None:
    assert re.search(
        r"Cluster ID: [\w-]{22}\n", run_tool(f"{TOOLS}.ClusterTool", "cluster-id",
                                             "--bootstrap-server", bootstrap)
    )  # fmt: skip
    listed = run_tool(f"{TOOLS}.ClusterTool", "list-endpoints", "--bootstrap-server", bootstrap)
    host, port = bootstrap.split(":")
    rows = [line.split() for line in listed.splitlines()[1:] if line.strip()]
    assert [row[1:3] + row[4:] for row in rows] == [[host, port, "unfenced", "broker"]], listed


@pytest.mark.parametrize(
    ("time", "offset"),
    [
        ("earliest", 10),
        ("latest", 50),
        ("max-timestamp", 49),
        ("earliest-local", 10),
        ("latest-tiered", None),
        ("earliest-pending-upload", None),
        ("-6", None),
        (str(FIRST_TIME_MS), 10),
        (str(FIRST_TIME_MS + 10**9), None),
    ],
)
def test_offsets_of_every_special_time(
    bootstrap: str, shortened: str, time: str, offset: int | None
) -> None:
    told = run_tool(
        OFFSETS_TOOL, "--bootstrap-server", bootstrap, "--topic-partitions", f"{shortened}:0",
        "--time", time,
    )  # fmt: skip
    assert told == ("" if offset is None else f"{shortened}:0:{offset}\n")


@pytest.fixture(scope="module")
def shortened(bootstrap: str, admin: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A topic of 50 records whose first ten the delete-records tool took away."""
    topic = create_topic(admin, "shortened-by-tool")
    produce(bootstrap, topic, samples(50))
    wanted = tmp_path_factory.mktemp("shortened") / "offsets.json"
    partition = {"topic": topic, "partition": 0, "offset": 10}
    wanted.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    told = run("DeleteRecordsCommand", bootstrap, "--offset-json-file", str(wanted))
    assert f"partition: {topic}-0\tlow_watermark: 10" in told
    return topic


def test_sizes_of_logs_are_told(bootstrap: str, shortened: str) -> None:
    told = run("LogDirsCommand", bootstrap, "--describe", "--topic-list", shortened)
    (directory,) = json.loads(told.splitlines()[-1])["brokers"][0]["logDirs"]
    (partition,) = directory["partitions"]
    assert directory["error"] is None
    assert partition["partition"] == f"{shortened}-0"
    assert partition["size"] > 50 * 10
    assert (partition["offsetLag"], partition["isFuture"]) == (0, False)


def test_the_leader_needs_no_election(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    everywhere = run(
        "LeaderElectionCommand", bootstrap, "--election-type", "preferred", "--all-topic-partitions"
    )
    assert everywhere == ""
    of = ("--election-type", "unclean", "--topic", topic, "--partition", "0")
    told = run("LeaderElectionCommand", bootstrap, *of)
    assert f"Valid replica already elected for partitions {topic}-0" in told


def test_replicas_stay_where_they_are(
    bootstrap: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, plan = make_topic(), tmp_path / "plan.json"
    partition = {"topic": topic, "partition": 0, "replicas": [1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    tool, given = "reassign.ReassignPartitionsCommand", ("--reassignment-json-file", str(plan))
    started = run(tool, bootstrap, *given, "--execute")
    assert f"Successfully started partition reassignment for {topic}-0" in started
    assert "No partition reassignments found" in run(tool, bootstrap, "--list")
    verified = run(tool, bootstrap, *given, "--verify")
    assert f"Reassignment of partition {topic}-0 is completed" in verified


def test_the_performance_tools_write_and_read_everything(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    written = run(
        "ProducerPerformance", bootstrap, "--topic", topic, "--num-records", "3000",
        "--record-size", "100", "--throughput", "-1",
    )  # fmt: skip
    assert re.search(r"^3000 records sent, .* records/sec", written, re.MULTILINE), written
    read = run(
        "ConsumerPerformance", bootstrap, "--topic", topic, "--num-records", "3000",
        "--timeout", "20000",
    )  # fmt: skip
    head, row = (line.split(", ") for line in read.splitlines()[-2:])
    assert dict(zip(head, row, strict=True))["data.consumed.in.nMsg"] == "3000", read


def test_the_verifiable_producer_and_consumer_agree(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    sent = events(
        run("VerifiableProducer", bootstrap, "--topic", topic, "--max-messages", "500", "--acks=-1")
    )
    assert sent["tool_data"][0]["acked"] == 500
    assert [each["offset"] for each in sent["producer_send_success"]] == list(range(500))
    got = events(
        run(
            "VerifiableConsumer", bootstrap, "--topic", topic, "--group-id", f"of-{topic}",
            "--max-messages", "500", "--reset-policy", "earliest",
        )
    )  # fmt: skip
    assert sum(each["count"] for each in got["records_consumed"]) >= 500
    assert all(each["success"] for each in got["offsets_committed"])
    assert committed(bootstrap, topic) == 500


def committed(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"of-{topic}"})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=20)
    consumer.close()
    return int(found.offset)


def test_quotas_of_clients_are_set_described_and_removed(bootstrap: str) -> None:
    of = ("--bootstrap-server", bootstrap, "--entity-type", "clients", "--entity-name", "by-tool")
    rates = "producer_byte_rate=10485760,request_percentage=150"
    run_tool(CONFIGS_TOOL, *of, "--alter", "--add-config", rates)
    described = run_tool(CONFIGS_TOOL, *of, "--describe")
    assert "producer_byte_rate=1.048576E7" in described, described
    assert "request_percentage=150.0" in described
    gone = ("--delete-config", "producer_byte_rate,request_percentage")
    run_tool(CONFIGS_TOOL, *of, "--alter", *gone)
    assert "producer_byte_rate" not in run_tool(CONFIGS_TOOL, *of, "--describe")
