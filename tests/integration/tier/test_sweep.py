"""A broker is killed while it copies, and while it deletes: no orphan stays, nothing is lost."""

from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.integration.tier.test_tiered_broker import (
    EARLIEST,
    LATEST_TIERED,
    make_topic,
    offset_of,
    read_all,
    server,
    start,
    until,
    wait_until_away,
    write,
)
from tests.integration.tier.test_tiered_broker import (
    RECORDS as WRITTEN,
)
from tests.support.tier.leftovers import missing, unnamed
from tests.support.tier.s3_server import S3Server

__all__ = ["server"]

SLOW = {"remote.log.manager.copy.max.bytes.per.second": str(2 * 1024 * 1024)}
KEPT_A_WHILE = {"file.delete.delay.ms": "600000"}
SWEEPS = {
    "horolog.tier.sweep.interval.ms": "1000",
    "horolog.tier.orphan.min.age.ms": "0",
    "log.initial.task.delay.ms": "200",
}


def test_a_broker_killed_while_it_copies(server: S3Server, tmp_path: Path) -> None:
    store, data = server.open(tmp_path.name), tmp_path / "data"
    lost: set[str] = set()
    for cut in range(3):
        with start(server, data, **SLOW) as broker:
            if not cut:
                make_topic(broker.bootstrap, "t", **KEPT_A_WHILE)
            write(broker.bootstrap, "t", cut * 2000, 2000)
            until(lambda before=lost: bool(unnamed(store) - before), "nothing is copied")  # type: ignore[misc]
            broker.kill()
        lost = unnamed(store)
    assert lost, "no kill was in the middle of a copy"
    with start(server, data, **SWEEPS) as broker:
        assert read_all(broker.bootstrap, "t", 6000) == list(range(6000))
        until(lambda: not unnamed(store) & lost, "orphans stay")
        assert not missing(store)
        wait_until_away(broker.bootstrap, "t")
        assert read_all(broker.bootstrap, "t", 6000) == list(range(6000))
        until(lambda: not unnamed(store), "orphans stay")


def test_a_broker_killed_before_it_has_removed_what_was_deleted(
    server: S3Server, tmp_path: Path
) -> None:
    store, data = server.open(tmp_path.name), tmp_path / "data"
    with start(server, data) as broker:
        for topic in ("gone", "kept"):  # a start counts the delay of "kept" to its end
            make_topic(broker.bootstrap, topic, **{"file.delete.delay.ms": "15000"})
            write(broker.bootstrap, topic)
            wait_until_away(broker.bootstrap, topic)
        first = offset_of(broker.bootstrap, "kept", LATEST_TIERED)[1] // 2
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        where = TopicPartition("kept", 0, first)
        admin.delete_records([where])[where].result(30)
        admin.delete_topics(["gone"])["gone"].result(30)
        until(lambda: bool(unnamed(store)), "no manifest has taken out what was deleted")
        broker.kill()
    gone = {each.key for each in store.list("topics/gone/")}
    assert any(key.endswith(".log") for key in gone)
    with start(server, data, **SWEEPS) as broker:
        until(lambda: not list(store.list("topics/gone/")), "objects of a deleted topic stay")
        until(lambda: not unnamed(store), "orphans stay")
        assert not missing(store)
        assert offset_of(broker.bootstrap, "kept", EARLIEST) == (0, first)
        rest = list(range(first, WRITTEN))
        assert read_all(broker.bootstrap, "kept", len(rest), first) == rest


def test_nothing_stays_in_the_store_of_a_topic_whose_tier_has_ended(
    server: S3Server, tmp_path: Path
) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    store, data = server.open(tmp_path.name), tmp_path / "data"
    with start(server, data) as broker:
        make_topic(broker.bootstrap, "t", **{"local.retention.bytes": str(3 * 1024 * 1024)})
        write(broker.bootstrap, "t")
        until(lambda: offset_of(broker.bootstrap, "t", -4)[1] > 0, "nothing leaves")
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        keys = ("remote.storage.enable", "false"), ("remote.log.delete.on.disable", "true")
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in keys
        ]
        change = ConfigResource(ConfigResource.Type.TOPIC, "t", incremental_configs=entries)
        admin.incremental_alter_configs([change])[change].result(30)
        until(
            lambda: not [each for each in store.list("topics/t/") if "manifest" not in each.key],
            "copies of what is on the disk stay",
        )
        first = offset_of(broker.bootstrap, "t", EARLIEST)[1]
        assert 0 < first < WRITTEN - 2000, "what is on the disk stays"
        rest = list(range(first, WRITTEN))
        assert read_all(broker.bootstrap, "t", len(rest), first) == rest
