"""Identity of a directory: Kafka's bytes written, and whatever Kafka wrote read."""

from uuid import UUID

import pytest

from storage.errors import CorruptCheckpoint, NewerFormat
from storage.files.meta_properties import (
    MetaProperties,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_partition_metadata,
    kafka_uuid,
    parse_kafka_uuid,
    read_clean_shutdown,
    read_meta_properties,
    read_partition_metadata,
    write_meta_properties,
    write_partition_metadata,
)
from tests.support.disk.simdisk import SimFileSystem

TOPIC_ID = UUID("12345678-9abc-4ef0-8123-456789abcdef")
TOPIC_TEXT = "EjRWeJq8TvCBI0VniavN7w"
META = MetaProperties("MkU3OEVBNTcwNTJENDM2Qg", 1, TOPIC_ID)


def disk_with(text: str) -> SimFileSystem:
    fs = SimFileSystem()
    fs.write_atomically("/f", text.encode())
    return fs


def test_a_uuid_is_written_as_kafka_does() -> None:
    assert kafka_uuid(TOPIC_ID) == TOPIC_TEXT
    assert parse_kafka_uuid(TOPIC_TEXT) == TOPIC_ID
    assert kafka_uuid(UUID(int=0)) == "A" * 22
    for text in ("", "short", "A" * 23, "A" * 30, "!" * 22):
        with pytest.raises(ValueError):
            parse_kafka_uuid(text)


def test_meta_properties_are_a_java_properties_file() -> None:
    assert encode_meta_properties(META, 1_700_000_000_000).decode() == (
        "#\n#Tue Nov 14 22:13:20 UTC 2023\n"
        f"node.id=1\ndirectory.id={TOPIC_TEXT}\nversion=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n"
    )


def test_meta_properties_are_read_back() -> None:
    fs = SimFileSystem()
    odd = META._replace(cluster_id="my=cluster: #1\\")
    for meta in (META, odd):
        write_meta_properties(fs, "/f", meta, 0)
        assert read_meta_properties(fs, "/f") == meta


def test_a_directory_without_them_has_no_identity() -> None:
    assert read_meta_properties(SimFileSystem(), "/f") is None


def test_an_old_kafka_had_broker_ids() -> None:
    fs = disk_with("#\n#Mon\nversion=0\nbroker.id=7\ncluster.id=abc\n")
    assert read_meta_properties(fs, "/f") == MetaProperties("abc", 7, None)


def test_javas_escapes_are_understood() -> None:
    fs = disk_with("! comment\n\nversion = 1\nnode.id= 3\ncluster.id=a\\:b\\u0041\\\\\n")
    assert read_meta_properties(fs, "/f") == MetaProperties("a:bA\\", 3, None)


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(NewerFormat):
        read_meta_properties(disk_with("version=2\nnode.id=1\n"), "/f")
    with pytest.raises(NewerFormat):
        read_partition_metadata(disk_with(f"version: 1\ntopic_id: {TOPIC_TEXT}"), "/f")


@pytest.mark.parametrize("text", ["version=1\nnode.id=x\n", "version=1\ndirectory.id=nonsense\n"])
def test_an_identity_that_makes_no_sense_is_told(text: str) -> None:
    with pytest.raises(CorruptCheckpoint):
        read_meta_properties(disk_with(text), "/f")


def test_partition_metadata_are_kafkas() -> None:
    fs = SimFileSystem()
    assert encode_partition_metadata(TOPIC_ID).decode() == f"version: 0\ntopic_id: {TOPIC_TEXT}"
    write_partition_metadata(fs, "/f", TOPIC_ID)
    assert read_partition_metadata(fs, "/f") == TOPIC_ID
    assert read_partition_metadata(fs, "/none") is None


@pytest.mark.parametrize(
    "text", ["", "version: 0\n", f"topic_id: {TOPIC_TEXT}", "version: 0\ntopic_id: x", "\0\0"]
)
def test_partition_metadata_that_make_no_sense_are_told(text: str) -> None:
    with pytest.raises(CorruptCheckpoint):
        read_partition_metadata(disk_with(text), "/f")


def test_the_clean_shutdown_mark() -> None:
    assert encode_clean_shutdown(12) == b'{"version":0,"brokerEpoch":12}'
    assert read_clean_shutdown(disk_with('{"version":0,"brokerEpoch":12}'), "/f") == 12
    assert read_clean_shutdown(disk_with(""), "/f") == -1
    assert read_clean_shutdown(disk_with("{}"), "/f") == -1
    assert read_clean_shutdown(disk_with("[1]"), "/f") == -1
    assert read_clean_shutdown(SimFileSystem(), "/f") is None
