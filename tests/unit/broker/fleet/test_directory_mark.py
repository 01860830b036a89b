"""Data directories of a fleet and of a broker alone: neither is taken for the other."""

from uuid import UUID

import pytest

from broker.fleet.directory_mark import check_mark
from config.errors import ConfigError
from storage.env import FileSystem
from storage.files.layout import FLEET_FILE
from tests.support.disk.simdisk import SimFileSystem

FLEET, OTHER = UUID(int=7), UUID(int=8)
PATH = f"/data/{FLEET_FILE}"


@pytest.fixture
def fs() -> FileSystem:
    made = SimFileSystem()
    made.make_dir("/data")
    return made


def marked(fs: FileSystem) -> FileSystem:
    check_mark(fs, "/data", FLEET, has_logs=False)
    return fs


def test_an_empty_directory_becomes_the_fleets_and_stays_so(fs: FileSystem) -> None:
    marked(fs)
    check_mark(fs, "/data", FLEET, has_logs=True)
    assert str(FLEET) in fs.read_text(PATH)


def test_the_mark_outlives_a_power_cut(fs: FileSystem) -> None:
    fs.sync_dir("/")
    marked(fs)
    assert isinstance(fs, SimFileSystem)
    after = fs.after_crash(1)
    with pytest.raises(ConfigError, match="node of the fleet"):
        check_mark(after, "/data", None, has_logs=True)


def test_topics_of_a_broker_alone_are_not_handed_to_a_fleet(fs: FileSystem) -> None:
    with pytest.raises(ConfigError, match="a broker that stood alone"):
        check_mark(fs, "/data", FLEET, has_logs=True)
    assert not fs.exists(PATH)


def test_a_fleets_directory_is_not_served_alone(fs: FileSystem) -> None:
    with pytest.raises(ConfigError, match=str(FLEET)):
        check_mark(marked(fs), "/data", None, has_logs=False)


def test_a_directory_of_another_fleet_is_refused(fs: FileSystem) -> None:
    with pytest.raises(ConfigError, match=f"{FLEET}.*{OTHER}"):
        check_mark(marked(fs), "/data", OTHER, has_logs=True)


def test_a_broker_alone_needs_no_mark(fs: FileSystem) -> None:
    check_mark(fs, "/data", None, has_logs=True)
    assert not fs.exists(PATH)


@pytest.mark.parametrize("spoilt", ["", "{", "[]", '{"format": 1}', '{"fleet_id": "x"}'])
def test_a_mark_that_cannot_be_read_refuses_both(fs: FileSystem, spoilt: str) -> None:
    fs.write_atomically(PATH, spoilt.encode())
    for fleet_id in (None, FLEET):
        with pytest.raises(ConfigError, match="cannot be read"):
            check_mark(fs, "/data", fleet_id, has_logs=True)


def test_a_changed_bit_is_no_other_fleet(fs: FileSystem) -> None:
    text = fs.read_text(marked(fs) and PATH)
    fs.write_atomically(PATH, text.replace(str(FLEET), str(OTHER)).encode())
    with pytest.raises(ConfigError, match="cannot be read"):
        check_mark(fs, "/data", OTHER, has_logs=True)
