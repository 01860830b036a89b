"""The source, the sink and jobs at a broker with TLS, SASL and ACLs, as a user with few rights."""

import json
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from cryptography import x509
from cryptography.x509.oid import NameOID

from broker.cli.main import main
from config.properties import read_properties
from pipeline.broker_client import BrokerClient
from pipeline.errors import BadOption, NotAllowed
from pipeline.sinks.topic.writer import TopicWriter
from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks
from pipeline.spark.topic_sink import sink_options
from protocol.apis.metadata import MetadataRequest
from tests.integration.test_sasl import PASSWORD, add_user
from tests.support.clients.certificates import Authority
from tests.support.clients.client_security import BEARER, ClientSecurity
from tests.support.clients.issuer import AUDIENCE, NAME, Issuer, IssuerServer
from tests.support.ports import free_port
from tests.support.spark.pipeline_logs import read_all
from tests.support.worlds.broker_process import start_broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS, SESSION_MS = 200, 2000
ALICE = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alice")])
WAYS = ("SSL", "SASL_SSL-SCRAM-SHA-512", "SASL_SSL-OAUTHBEARER")
RIGHTS = (
    ("in", AclOperation.READ),
    ("described", AclOperation.DESCRIBE),
    ("out", AclOperation.WRITE),
    ("out", AclOperation.DESCRIBE_CONFIGS),
    ("back", AclOperation.READ),
    ("back", AclOperation.WRITE),
    ("back", AclOperation.DESCRIBE_CONFIGS),
)
"""All that alice may do."""


class Secure:
    """A broker that lets nobody in, and how alice reaches it."""

    def __init__(self, folder: Path) -> None:
        """The broker is not started."""
        authority, self.issuer = Authority(), Issuer()
        self.folder = folder
        self.server = authority.server().write(folder / "server.pem")
        file, keys = authority.write(folder / "authority.pem"), folder / "keys.json"
        keys.write_text(json.dumps(self.issuer.published))
        self.alice = authority.client(ALICE).write(folder / "alice.pem")
        self.ports = {"SSL": free_port(), "SASL_SSL": free_port()}
        self.settings = {
            "listeners": ",".join(f"{name}://127.0.0.1:{at}" for name, at in self.ports.items()),
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
            "sasl.oauthbearer.expected.issuer": NAME,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "connections.max.reauth.ms": str(SESSION_MS),
            "ssl.keystore.location": str(self.server),
            "ssl.truststore.location": str(file),
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin",
            "log.initial.task.delay.ms": "86400000",  # the records are old
        }
        scram = ("SASL_SSL", file, "SCRAM-SHA-512")
        ways = (
            ClientSecurity("SSL", file),
            ClientSecurity(*scram, "alice", PASSWORD),
            ClientSecurity("SASL_SSL", file, BEARER, token=self.issuer.token("alice")),
        )
        self.ways = {each.name: each for each in ways}
        self.authority = file

    def bootstrap(self, way: str) -> str:
        return f"127.0.0.1:{self.ports[self.ways[way].protocol]}"

    def config(self, way: str) -> Path:
        """The file for `--command-config`."""
        path = self.ways[way].write_properties(self.folder)
        if way == "SSL":
            keys = f"ssl.keystore.type=PEM\nssl.keystore.location={self.alice}\n"
            path.write_text(path.read_text() + keys)
        return path

    def options(self, way: str, **more: str) -> dict[str, str]:
        """The same as options of the source and the sink."""
        settings = read_properties(self.config(way).read_text())
        given = {f"kafka.{key}": value for key, value, _ in settings}
        return {**given, "kafka.bootstrap.servers": self.bootstrap(way), **more}

    def of_admin(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": f"127.0.0.1:{self.ports['SASL_SSL']}",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.authority),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "admin",
            "sasl.password": PASSWORD,
        }

    def prepare(self) -> None:
        """Topics, alice's rights, and records in the topic `in`."""
        admin = AdminClient(self.of_admin())
        topics = [NewTopic(name, 1, 1) for name in ("in", "closed", "described", "out", "back")]
        rights = [
            AclBinding(
                ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:alice", "*",
                operation, AclPermissionType.ALLOW,
            )
            for topic, operation in RIGHTS
        ]  # fmt: skip
        for each in (*admin.create_topics(topics).values(), *admin.create_acls(rights).values()):
            each.result(30)
        producer = Producer({**self.of_admin(), "linger.ms": 5})
        for topic in ("in", "described"):
            for number in range(RECORDS):
                producer.produce(topic, b"v%d" % number, b"k", timestamp=1_700_000_000_000)
        assert producer.flush(30) == 0


@contextmanager
def running(folder: Path) -> Iterator[Secure]:
    """The broker at work, with topics, rights and records."""
    made = Secure(folder)
    for user in ("admin", "alice"):
        add_user(folder / "data", user, PASSWORD)
    with start_broker(folder / "data", made.settings):
        made.prepare()
        yield made


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    with running(tmp_path_factory.mktemp("secure")) as made:
        yield made


def values(secure: Secure, way: str, topic: str) -> list[bytes]:
    rows = read_all(secure.options(way, subscribe=topic, mode="wire"), ["value"])
    return [row["value"] for row in rows]


@pytest.mark.parametrize("way", WAYS)
def test_spark_reads_and_writes(secure: Secure, way: str, spark: "SparkSession") -> None:
    before = len(values(secure, way, "back"))
    read = spark.read.format("horolog").options(**secure.options(way, subscribe="in", mode="wire"))
    frame = read.load().select("key", "value", "timestamp")
    write = frame.write.format("horolog").options(**secure.options(way, topic="back"))
    write.mode("append").save()
    assert values(secure, way, "back")[before:] == [b"v%d" % each for each in range(RECORDS)]


def test_a_stream_reads_and_its_plan_tells_no_secret(
    secure: Secure, spark: "SparkSession", tmp_path: Path
) -> None:
    way = "SASL_SSL-SCRAM-SHA-512"
    pem = secure.alice.read_text()
    options = secure.options(way, subscribe="in", mode="wire") | {
        "kafka.ssl.keystore.key": pem,
        "kafka.ssl.keystore.certificate.chain": pem,
    }
    batch = spark.read.format("horolog").options(**options).load()
    told = [batch._jdf.queryExecution().toString()]
    stream = spark.readStream.format("horolog").options(**options, startingOffsets="earliest")
    frame = stream.load().select("value")
    told.append(frame._jdf.queryExecution().logical().toString())
    query = (
        frame.writeStream.format("horolog")
        .options(**secure.options(way, topic="out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    told.append(query._jsq.explainInternal(True))
    progress = query.lastProgress
    assert progress is not None
    assert progress.numInputRows == RECORDS
    told.append(progress.json)
    files = (each for each in (tmp_path / "checkpoint").rglob("*") if each.is_file())
    told += [each.read_bytes().decode(errors="replace") for each in files]
    assert [each for each in told if PASSWORD in each or "PRIVATE KEY" in each] == []


@pytest.mark.parametrize("way", WAYS)
def test_a_job_copies(secure: Secure, way: str, capsys: pytest.CaptureFixture[str]) -> None:
    config, at = str(secure.config(way)), secure.bootstrap(way)
    status = main([
        "spark", "replay", "--bootstrap", at, "--command-config", config, "--topic", "in",
        "--to", at, "--to-command-config", config, "--to-topic", "out", "--json",
    ])  # fmt: skip
    said = capsys.readouterr()
    assert status == 0, said.err
    assert json.loads(said.out)["records"] == RECORDS


@pytest.mark.parametrize("way", WAYS)
def test_a_denied_read_names_the_topic_and_the_right(secure: Secure, way: str) -> None:
    who = "User:alice" if "SCRAM" in way else "the user of "
    with pytest.raises(NotAllowed, match=f"{who}.* has not the right DESCRIBE on the topic closed"):
        values(secure, way, "closed")
    with pytest.raises(NotAllowed, match=f"{who}.* has not the right READ on the topic described"):
        values(secure, way, "described")


def test_a_denied_write_names_the_right_at_once(secure: Secure) -> None:
    way = "SASL_SSL-SCRAM-SHA-512"
    security = parse(secure.options(way, subscribe="in")).security
    writer = TopicWriter(secure.bootstrap(way), "in", security=security)
    began = time.monotonic()
    with pytest.raises(NotAllowed, match="User:alice has not the right WRITE on the topic in"):
        writer.write(pa.RecordBatch.from_pydict({"value": pa.array([b"v"])}))
    writer.close()
    with pytest.raises(NotAllowed, match="the right DESCRIBE_CONFIGS on the topic in"):
        sink_options(secure.options(way, topic="in"), ["value", "timestamp"])
    assert time.monotonic() - began < 10


def test_a_wrong_password_is_told_at_once_and_not_shown(secure: Secure) -> None:
    way = "SASL_SSL-SCRAM-SHA-512"
    options = secure.options(way, subscribe="in")
    options["kafka.sasl.jaas.config"] = 'Any required username="alice" password="not-it";'
    with pytest.raises(NotAllowed, match="refuses User:alice by SCRAM-SHA-512") as refused:
        parse_and_plan(options)
    assert "not-it" not in str(refused.value)


def test_a_broker_of_another_authority_is_not_trusted(secure: Secure, tmp_path: Path) -> None:
    other = Authority("another").write(tmp_path / "other.pem")
    options = secure.options("SSL", subscribe="in")
    options["kafka.ssl.truststore.location"] = str(other)
    with pytest.raises(Exception, match=r"no TLS with .*ssl\.truststore"):
        parse_and_plan(options)


def test_what_is_sent_to_workers_prints_no_secret(secure: Secure) -> None:
    way = "SASL_SSL-SCRAM-SHA-512"
    options = parse(secure.options(way, subscribe="in", mode="wire"))
    tasks = plan_tasks(options)
    sink = sink_options(secure.options(way, topic="out"), ["value"])
    for each in (tasks, options, sink):
        assert PASSWORD not in repr(each)
        assert PASSWORD not in str(each)
    assert pickle.loads(pickle.dumps(tasks)) == tasks


@pytest.mark.parametrize("way", [each for each in WAYS if "SASL" in each])
def test_a_session_is_renewed_before_it_ends(secure: Secure, way: str) -> None:
    security = parse(secure.options(way, subscribe="in")).security
    ends = time.monotonic() + 1.5 * SESSION_MS / 1000
    with BrokerClient(secure.bootstrap(way), security) as client:
        while time.monotonic() < ends:
            assert client.call(MetadataRequest(topics=None)).topics
            time.sleep(0.1)


def test_a_provider_by_https_gives_the_token(secure: Secure) -> None:
    with IssuerServer(secure.issuer, secure.server) as provider:
        options = secure.options("SASL_SSL-OAUTHBEARER", subscribe="in", mode="wire")
        options["kafka.sasl.oauthbearer.token.endpoint.url"] = f"{provider.url}/token"
        assert len(read_all(options, ["value"])) == RECORDS
        assert provider.asked == ["/token"], "connections share a token"
        options["kafka.sasl.oauthbearer.token.endpoint.url"] = "http://localhost/token"
        with pytest.raises(BadOption, match="https://"):
            parse(options)


def parse_and_plan(options: dict[str, str]) -> object:
    return plan_tasks(parse(options))
