"""Settings that are read again: all or nothing, what may change now, what waits for a restart."""

from pathlib import Path

import pytest

from config.errors import ConfigError
from config.reload import Reloaded
from config.sources import load
from config.store import ConfigStore


class Server:
    """A store over a file that can be edited, below a flag and a variable."""

    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self.edit(text)
        self.store = ConfigStore(self._read())

    def _read(self):
        environment = {"KAFKA_MAX_CONNECTIONS": "50"}
        flags = ["log.retention.ms=9"]
        return load(flags=flags, environment=environment, file=str(self.file)).layers

    def edit(self, text: str) -> None:
        self.file.write_text(text)

    def reload(self) -> Reloaded:
        return self.store.reload(self._read())


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "server.properties", "num.partitions=3\nlog.retention.bytes=1000\n")


def test_what_may_change_counts_and_the_rest_is_named(server: Server) -> None:
    server.edit("num.partitions=4\nlog.retention.bytes=2000\nmax.connections.per.ip=7\n")
    outcome = server.reload()
    assert set(outcome.changed) == {"log.retention.bytes", "max.connections.per.ip"}
    assert outcome.at_restart == ("num.partitions",)
    assert server.store.broker_config.num_partitions == 3
    assert server.store.broker_config.max_connections_per_ip == 7
    assert server.store.topic_config("t").retention_bytes == 2000


def test_again_without_an_edit_says_the_same_of_a_restart_and_changes_nothing(
    server: Server,
) -> None:
    server.edit("num.partitions=4\nlog.retention.bytes=2000\n")
    server.reload()
    outcome = server.reload()
    assert outcome.changed == ()
    assert outcome.at_restart == ("num.partitions",)
    server.edit("num.partitions=3\nlog.retention.bytes=2000\n")
    assert server.reload().at_restart == ()


def test_a_key_that_was_taken_out_is_its_default_again(server: Server) -> None:
    server.edit("")
    outcome = server.reload()
    assert outcome.changed == ("log.retention.bytes",)
    assert outcome.at_restart == ("num.partitions",)
    assert server.store.topic_config("t").retention_bytes == -1


def test_what_stands_above_the_file_still_wins(server: Server) -> None:
    server.edit(
        "num.partitions=3\nlog.retention.ms=5\nmax.connections=1\nlog.retention.bytes=1000\n"
    )
    assert server.reload().changed == ()
    assert server.store.topic_config("t").retention_ms == 9
    assert server.store.broker_config.max_connections == 50


@pytest.mark.parametrize(
    "text",
    [
        "log.retention.bytes=2000\nno.such.key=1\n",
        "log.retention.bytes=2000\nmax.connections.per.ip=many\n",
        "log.retention.bytes=2000\nadvertised.listeners=PLAINTEXT://0.0.0.0:9092\n",
        "log.cleaner.min.compaction.lag.ms=9\nlog.cleaner.max.compaction.lag.ms=5\n",
    ],
)
def test_one_mistake_refuses_all_of_it(server: Server, text: str) -> None:
    server.edit(text)
    with pytest.raises(ConfigError):
        server.reload()
    assert server.store.topic_config("t").retention_bytes == 1000


ALONE = "num.partitions=3\nlog.retention.bytes=1000\n"
IN_A_FLEET = (
    f"{ALONE}horolog.fleet.url=postgresql://localhost/horolog\nhorolog.tier.url=s3://pail\n"
)


@pytest.mark.parametrize(
    ("before", "after", "durability"),
    [(ALONE, IN_A_FLEET, "by-acks"), (IN_A_FLEET, ALONE, "fsync")],
)
def test_who_joins_a_fleet_or_leaves_it_does_so_at_a_restart(
    tmp_path: Path, before: str, after: str, durability: str
) -> None:
    server = Server(tmp_path / "server.properties", before)
    url = server.store.broker_config.horolog_fleet_url
    server.edit(f"{after}max.connections.per.ip=7\n")
    outcome = server.reload()
    assert outcome.changed == ("max.connections.per.ip",)
    assert {"horolog.fleet.url", "horolog.durability"} <= set(outcome.at_restart)
    assert server.store.broker_config.horolog_fleet_url == url
    assert server.store.topic_config("t").horolog_durability == durability
    server.edit(before)
    assert server.reload().at_restart == ()


def test_subscribers_hear_of_it_and_overrides_of_topics_stay(server: Server) -> None:
    heard: list[str | None] = []
    server.store.subscribe(heard.append)
    server.store.set_topic("t", {"retention.bytes": "7"})
    server.edit("num.partitions=3\nlog.retention.bytes=2000\n")
    server.reload()
    assert heard == ["t", None]
    assert server.store.topic_config("t").retention_bytes == 7
    assert server.store.topic_config("u").retention_bytes == 2000
