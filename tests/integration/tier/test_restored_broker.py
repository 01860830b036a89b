"""The disk of a broker is lost; another one goes on with what the store has."""

from pathlib import Path
from shutil import rmtree

from confluent_kafka import Consumer, TopicPartition

from broker.topics.stored_settings import without_secrets
from storage.files.meta_properties import read_meta_properties
from storage.posix import real_env
from storage.tier.card import claim
from storage.tier.cluster_picture import Content, PictureWriter, read_files
from tests.integration.tier.test_restore_command import restored_by_command
from tests.integration.tier.test_tiered_broker import (
    EARLIEST,
    LATEST_TIERED,
    T0,
    make_topic,
    offset_of,
    read_all,
    server,
    start,
    wait_until_away,
    write,
)
from tests.support.tier.s3_server import S3Server

__all__ = ["server"]


def take_picture(store_of: S3Server, prefix: str, data_dir: Path) -> None:
    """Puts the files of a data directory into the store."""
    env, store = real_env(), store_of.open(prefix)
    meta = read_meta_properties(env.fs, str(data_dir / "meta.properties"))
    assert meta is not None
    assert meta.cluster_id is not None
    assert meta.node_id is not None
    claim(store, meta.cluster_id)
    files = read_files(env.fs, str(data_dir), without_secrets)
    PictureWriter(store, env.clock).write_if_changed(Content(meta.cluster_id, meta.node_id, files))


def test_clients_go_on_with_what_was_copied(server: S3Server, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start(server, data) as broker:
        make_topic(broker.bootstrap, "t")
        write(broker.bootstrap, "t")
        wait_until_away(broker.bootstrap, "t")
        take_picture(server, tmp_path.name, data)
        copied = offset_of(broker.bootstrap, "t", LATEST_TIERED)[1] + 1
        broker.kill()
    rmtree(data)
    restored_by_command(server, tmp_path.name, data)
    assert sum(each.stat().st_size for each in data.rglob("*.log")) == 0
    with start(server, data) as broker:
        assert offset_of(broker.bootstrap, "t", EARLIEST) == (0, 0)
        assert read_all(broker.bootstrap, "t", copied) == list(range(copied))
        for wanted in (0, 17, copied // 3, copied - 1):
            assert offset_of(broker.bootstrap, "t", T0 + wanted) == (0, wanted)
        write(broker.bootstrap, "t", copied, 100)
        assert len(read_all(broker.bootstrap, "t", copied + 100)) == copied + 100
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader"})
        assert consumer.get_watermark_offsets(TopicPartition("t", 0)) == (0, copied + 100)
        consumer.close()
