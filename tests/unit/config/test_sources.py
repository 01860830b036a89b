"""Where settings come from: precedence, environment names, and mistakes with their place."""

from pathlib import Path

import pytest

from config.errors import ConfigError, SeveralConfigError
from config.names import BROKER_KEYS
from config.sources import key_of_variable, load, variable_of_key
from config.store import ConfigStore


def store_of(tmp_path: Path, *, flags=(), environment=None, file: str = "") -> ConfigStore:
    path = tmp_path / "server.properties"
    path.write_text(file)
    return ConfigStore(load(flags=flags, environment=environment or {}, file=str(path)).layers)


def refusal(**sources) -> str:
    with pytest.raises(ConfigError) as refused:
        load(**{"environment": {}, **sources})
    return str(refused.value)


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    sources = {
        "flags": ["num.partitions=4"],
        "environment": {"KAFKA_NUM_PARTITIONS": "3"},
        "file": "num.partitions=2",
    }
    seen = []
    for gone in ("", "flags", "environment", "file"):
        sources.pop(gone, None)
        seen.append(store_of(tmp_path, **sources).broker_config.num_partitions)
    assert seen == [4, 3, 2, 1]


def test_a_higher_source_wins_even_by_a_weaker_spelling(tmp_path: Path) -> None:
    store = store_of(
        tmp_path, flags=["log.retention.hours=1"], file="log.retention.ms=5\nlog.roll.ms=7"
    )
    assert store.topic_defaults.retention_ms == 3_600_000
    assert store.topic_defaults.segment_ms == 7


@pytest.mark.parametrize(
    ("file", "retention_ms"),
    [
        ("log.retention.hours=1", 3_600_000),
        ("log.retention.hours=1\nlog.retention.minutes=1", 60_000),
        ("log.retention.ms=1\nlog.retention.hours=1\nlog.retention.minutes=1", 1),
        ("log.retention.hours=-1", -1),
        ("log.retention.ms=-20", -1),
        ("log.retention.minutes=-3", -1),
    ],
)
def test_retention_is_read_in_milliseconds_before_minutes_before_hours(
    tmp_path: Path, file: str, retention_ms: int
) -> None:
    assert store_of(tmp_path, file=file).topic_defaults.retention_ms == retention_ms


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.hours"])
def test_no_retention_at_all_is_refused_on_the_broker(name: str) -> None:
    assert "at least 1" in refusal(flags=[f"{name}=0"])


def test_rolling_is_read_in_milliseconds_before_hours(tmp_path: Path) -> None:
    file = "log.roll.hours=2\nlog.roll.jitter.hours=1"
    assert store_of(tmp_path, file=file).topic_defaults.segment_ms == 7_200_000
    assert store_of(tmp_path, file=file).topic_defaults.segment_jitter_ms == 3_600_000
    assert store_of(tmp_path, file=file + "\nlog.roll.ms=9").topic_defaults.segment_ms == 9


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("KAFKA_LOG_RETENTION_MS", "log.retention.ms"),
        ("KAFKA_A__B___C", "a_b-c"),
        ("HOROLOG_DURABILITY", "horolog.durability"),
        ("HOROLOG_TIME_INDEX_ENTRY", "horolog.time.index.entry"),
    ],
)
def test_a_variable_names_a_key_by_the_rule_of_kafka(variable: str, key: str) -> None:
    assert key_of_variable(variable) == key
    assert variable_of_key(key) == variable


def test_every_key_can_be_set_by_a_variable() -> None:
    for key in BROKER_KEYS:
        assert key_of_variable(variable_of_key(key.name)) == key.name


def test_a_setting_of_the_environment_says_so(tmp_path: Path) -> None:
    store = store_of(tmp_path, environment={"HOROLOG_DURABILITY": "os", "PATH": "/bin"})
    (entry,) = store.describe_broker(names=["horolog.durability"])
    assert (entry.value, entry.where) == ("os", "environment variable HOROLOG_DURABILITY")


@pytest.mark.parametrize(
    "variable",
    [
        "KAFKA_HEAP_OPTS",
        "KAFKA_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_JMX_PORT",
        "KAFKA_PORT",
        "KAFKA_PORT_9092_TCP_ADDR",
        "KAFKA_SERVICE_HOST",
        "KAFKA_SERVICE_PORT_CLIENTS",
        "HOROLOG_SERVICE_PORT",
        "HOROLOG_PORT_9092_TCP",
        "HOROLOG_HTTP",
        "HOROLOG_HTTP_TOKEN",
        "HOROLOG_BOOTSTRAP",
        "HOROLOG_COMMAND_CONFIG",
    ],
)
def test_variables_of_images_kubernetes_and_the_command_line_are_no_settings(variable: str) -> None:
    loaded = load(environment={variable: "x"})
    assert not any(layer.settings for layer in loaded.layers)


def test_an_unknown_variable_is_refused_with_the_key_that_was_meant() -> None:
    text = refusal(environment={"KAFKA_LOG_RETENTION_MSS": "1"})
    assert "KAFKA_LOG_RETENTION_MSS" in text
    assert "log.retention.ms" in text


KAFKAS_OWN_FILE = """
process.roles=broker,controller
node.id=4
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\
SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_the_server_properties_that_kafka_ships_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(KAFKAS_OWN_FILE)
    loaded = load(environment={}, file=str(path))
    config = ConfigStore(loaded.layers).broker_config
    assert (config.node_id, config.log_dir) == (4, "/tmp/kraft-combined-logs")
    ignored = {each.name for each in loaded.ignored}
    assert {"process.roles", "num.network.threads"} <= ignored
    assert "log.segment.bytes" not in ignored
    assert [str(each) for each in config.client_listeners] == ["PLAINTEXT://:9092"]
    assert str(loaded.ignored[0]).startswith(f"{path}:2: process.roles is ignored: ")


@pytest.mark.parametrize(
    "line",
    [
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OUT",
        "listener.security.protocol.map=OUT:SASL_TLS,SSL:SSL",
        "default.replication.factor=3",
        "transaction.partition.verification.enable=false",
        "process.roles=controller",
        "security.providers=x",
        "ssl.keystore.type=JKS",
        "ssl.provider=BC",
        "log.dirs=/a,/b",
    ],
)
def test_what_cannot_be_honoured_is_refused_and_not_ignored(tmp_path: Path, line: str) -> None:
    path = tmp_path / "server.properties"
    path.write_text(line)
    assert f"{path}:1: " in refusal(file=str(path))


def test_every_mistake_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text("log:\n  segment.bytes: 1\nlistners: x\n")
    with pytest.raises(SeveralConfigError) as refused:
        load(flags=["num.partitions=0"], environment={"KAFKA_NODE_ID": "one"}, file=str(path))
    lines = str(refused.value).splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "--set num.partitions",
        "environment variable KAFKA_NODE_ID",
        f"{path}:2",
        f"{path}:3",
    ]
    assert "did you mean listeners?" in lines[3]


def test_a_key_set_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\n\nnode.id=2\n")
    assert refusal(file=str(path)) == f"{path}:3: node.id is set in line 1 already"


def test_a_file_that_cannot_be_read_is_a_refusal(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(file=str(tmp_path / "absent.yaml"))
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert str(binary) in refusal(file=str(binary))
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: 1\nb: [\n")
    assert refusal(file=str(broken)).startswith(f"{broken}:")


def test_a_flag_without_a_value_is_refused() -> None:
    assert "key=value" in refusal(flags=["num.partitions"])


def test_the_last_flag_of_one_key_wins() -> None:
    loaded = load(flags=["node.id=1", "node.id=2"], environment={})
    assert ConfigStore(loaded.layers).broker_config.node_id == 2


def test_keys_that_contradict_are_refused_with_the_place_of_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"server\.properties:1: .* OUT, which listeners"):
        store_of(tmp_path, file="advertised.listeners=OUT://host:1")


@pytest.mark.parametrize("address", ["0.0.0.0:9092", ":9092", "[::]:9092", "host:0"])
def test_an_address_that_no_client_can_dial_is_not_advertised(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigError, match="no client can connect"):
        store_of(tmp_path, flags=[f"advertised.listeners=PLAINTEXT://{address}"])


@pytest.mark.parametrize("address", ["0.0.0.0:9092", "host:0"])
def test_nor_is_it_told_to_those_outside(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigError, match=r"horolog\.published\.listeners: no client can connect"):
        store_of(tmp_path, flags=[f"horolog.published.listeners=PLAINTEXT://{address}"])


def test_a_published_address_of_a_listener_that_is_not_there_is_for_nobody(tmp_path: Path) -> None:
    flags = ["listeners=OUT://:1", "horolog.published.listeners=PLAINTEXT://localhost:9092"]
    assert len(store_of(tmp_path, flags=flags).broker_config.client_listeners) == 1


def test_a_listener_for_controllers_is_not_opened(tmp_path: Path) -> None:
    flags = ["listeners=A://:1,Ctl://:2,B://:3", "controller.listener.names=ctl, other"]
    config = store_of(tmp_path, flags=flags).broker_config
    assert [each.name for each in config.client_listeners] == ["A", "B"]
    with pytest.raises(ConfigError, match="leaves no listener for clients"):
        store_of(tmp_path, flags=["listeners=A://:1", "controller.listener.names=A"])


STARTED_BY_TESTCONTAINERS = {  # what its module for apache/kafka sets
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
    "CONTROLLER:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_NODE_ID": "1",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:32768,BROKER://79a8c4:9093",
}


def test_the_variables_that_testcontainers_sets_are_understood() -> None:
    config = ConfigStore(load(environment=STARTED_BY_TESTCONTAINERS).layers).broker_config
    assert [each.port for each in config.client_listeners] == [9092, 9093]
    assert config.cluster_id == "4L6g3nShT-eMCtK--X86sw"


def test_two_listeners_on_one_port_are_refused_and_two_free_ports_are_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="address of another"):
        store_of(tmp_path, flags=["listeners=A://h:1,B://h:1"])
    store = store_of(tmp_path, flags=["listeners=A://h:0,B://h:0"])
    assert [each.name for each in store.broker_config.listeners] == ["A", "B"]


def test_older_names_of_broker_keys_work(tmp_path: Path) -> None:
    store = store_of(tmp_path, file="broker.id=9\nlog.dir=/srv/old\n")
    assert (store.broker_config.node_id, store.broker_config.log_dir) == (9, "/srv/old")
