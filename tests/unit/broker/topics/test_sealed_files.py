"""The JSON files of a data directory: a changed bit is refused by name, or changes nothing."""

import asyncio
import json
from collections.abc import Callable
from typing import cast
from uuid import UUID

import pytest

from broker.quotas import quota_file
from broker.quotas.table import Entity, Limits, QuotaTable, alter, entity_of
from broker.runtime.lanes import DiskLane
from broker.topics.stored_settings import FILE_NAME as SETTINGS_FILE
from broker.topics.stored_settings import stored_lines, unset_key, without_secrets
from broker.transactions.producer_ids import ProducerIds
from config.errors import ConfigError
from config.overrides import restore
from config.sealed_json import KEY, check_seal, sealed
from config.store import ConfigStore
from storage.directory import topics_file
from storage.directory.producer_ids_file import FILE_NAME as IDS_FILE
from storage.directory.topics_file import CatalogState, TopicEntry
from storage.errors import CorruptCheckpoint, NewerFormat
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.worlds.handler_world import LOG_DIR, InlineLanes, World

REFUSALS = (CorruptCheckpoint, NewerFormat, ConfigError)


def topics() -> bytes:
    entries = {name: TopicEntry(UUID(int=number), 3) for number, name in enumerate("km")}
    return topics_file.render(CatalogState(entries, frozenset([UUID(int=9)])))


def quotas() -> bytes:
    rows: dict[Entity, Limits] = {}
    alter(rows, entity_of([("user", "u")]), {"producer_byte_rate": 1234.0})
    alter(rows, entity_of([("user", None)]), {"request_percentage": 77.5})
    return quota_file.render(QuotaTable(rows))


def settings() -> bytes:
    store = ConfigStore()
    store.set_topic("t", {"retention.ms": "700", "index.interval.bytes": "99"})
    store.commit(store.prepare_broker("", {"log.cleaner.backoff.ms": "77"}))
    return store.serialise().encode()


def producer_ids() -> bytes:
    fs = SimFileSystem()
    next_producer_id(fs)
    return fs.read_bytes(f"{LOG_DIR}/{IDS_FILE}")


def read_producer_ids(data: bytes) -> object:
    fs = SimFileSystem()
    fs.make_dir(LOG_DIR)
    fs.write_atomically(f"{LOG_DIR}/{IDS_FILE}", data)
    return next_producer_id(fs)


def next_producer_id(fs: SimFileSystem) -> int:
    if not fs.exists(LOG_DIR):
        fs.make_dir(LOG_DIR)
    ids = ProducerIds(sim_env(fs=fs), cast("DiskLane", InlineLanes()), lambda: ())
    ids.load()
    return asyncio.run(ids.allocate())


FILES: dict[str, tuple[Callable[[], bytes], Callable[[bytes], object]]] = {
    "topics": (topics, topics_file.parse),
    "quotas": (quotas, lambda data: quota_file.parse("q", data.decode(errors="replace")).entries),
    "settings": (settings, lambda data: restore(data.decode(errors="replace"))),
    "producer ids": (producer_ids, read_producer_ids),
}


@pytest.mark.parametrize("name", FILES)
def test_a_changed_bit_is_refused_or_changes_nothing(name: str) -> None:
    write, read = FILES[name]
    data = write()
    whole = read(data)
    refused = 0
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            assert read(bytes(changed)) == whole, changed
        except REFUSALS:
            refused += 1
    assert refused > 4 * len(data)


@pytest.mark.parametrize("name", FILES)
def test_a_file_without_a_checksum_is_believed(name: str) -> None:
    write, read = FILES[name]
    data = write()
    document = json.loads(data)
    assert len(document.pop(KEY)) == 8
    assert read(json.dumps(document).encode()) == read(data)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("checksum", ['"00000000"', "0", "null", "[]", '""'])
def test_a_wrong_checksum_is_told_with_what_to_do(name: str, checksum: str) -> None:
    write, read = FILES[name]
    data = write()
    was = json.dumps(json.loads(data)[KEY])
    with pytest.raises(REFUSALS, match=r'checksum.*backup.*take "checksum" out'):
        read(data.replace(was.encode(), checksum.encode()))


def disk_with(text: str) -> SimFileSystem:
    fs = SimFileSystem()
    fs.make_dir("/data")
    fs.write_atomically(f"/data/{SETTINGS_FILE}", text.encode())
    return fs


def test_taking_a_setting_back_keeps_the_file_sound() -> None:
    fs = disk_with(settings().decode())
    unset_key(fs, "/data", "retention.ms", "t")
    text = fs.read_text(f"/data/{SETTINGS_FILE}")
    assert KEY in json.loads(text)
    assert set(restore(text).topics["t"]) == {"index.interval.bytes"}


def test_no_new_checksum_vouches_for_a_changed_file() -> None:
    fs = disk_with(settings().decode().replace('"700"', '"500"'))
    assert "its checksum is" in stored_lines(fs, "/data")
    with pytest.raises(ConfigError, match='take "checksum" out'):
        unset_key(fs, "/data", "index.interval.bytes", "t")
    assert '"500"' in fs.read_text(f"/data/{SETTINGS_FILE}")


async def test_a_start_refuses_changed_settings_by_name() -> None:
    world = World()
    world.broker.config.set_topic("t", {"retention.ms": "700"})
    text = world.broker.config.serialise().replace('"700"', '"500"')
    world.fs.write_atomically(f"{LOG_DIR}/{SETTINGS_FILE}", text.encode())
    with pytest.raises(ConfigError, match=r"horolog-config\.json.*checksum") as refusal:
        world.broker.topics.restore_settings()
    assert "config unset" not in str(refusal.value)


def test_settings_without_secrets_have_all_others_and_are_sealed() -> None:
    store = ConfigStore()
    store.set_topic("t", {"retention.ms": "700"})
    plain = store.serialise()
    assert without_secrets(plain) == plain
    document = json.loads(plain)
    document["brokers"] = {
        "": {"log.cleaner.backoff.ms": "77", "ssl.keystore.password": "PLANTED"},
        "1": {"listener.name.a.ssl.keystore.key": "PLANTED"},
    }
    text = without_secrets(json.dumps(sealed(document)))
    assert "PLANTED" not in text
    found = json.loads(text)
    check_seal(found)
    assert found["brokers"] == {"": {"log.cleaner.backoff.ms": "77"}, "1": {}}
    assert found["topics"] == document["topics"]
    assert restore(text).topics["t"]["retention.ms"].value == 700


@pytest.mark.parametrize("text", ["", "[]", settings().decode().replace("700", "701")])
def test_settings_that_are_damaged_get_no_new_checksum(text: str) -> None:
    with pytest.raises(ConfigError):
        without_secrets(text)
