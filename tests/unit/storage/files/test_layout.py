"""File and directory names are Kafka's, there and back."""

from uuid import UUID

import pytest

from storage.files.layout import (
    LOG,
    PartitionName,
    SegmentFile,
    deleted_partition_dir_name,
    is_deleted_partition_dir,
    parse_partition_dir,
    parse_segment_name,
    partition_dir_name,
    segment_name,
)

UNIQUE = UUID("0123456789abcdef0123456789abcdef")


def test_a_segment_is_named_by_its_base_offset_in_twenty_digits() -> None:
    assert segment_name(42, LOG) == "00000000000000000042.log"
    assert segment_name(2**63 - 1, ".index") == "09223372036854775807.index"


def test_a_segment_name_is_read_back() -> None:
    assert parse_segment_name("00000000000000000042.timeindex") == SegmentFile(42, ".timeindex")
    assert parse_segment_name("00000000000000000042.log.deleted") == SegmentFile(42, ".log.deleted")


@pytest.mark.parametrize(
    "name",
    ["42.log", "leader-epoch-checkpoint", "0000000000000000004x.log", "00000000000000000042", ""],
)
def test_other_names_are_no_segments(name: str) -> None:
    assert parse_segment_name(name) is None


@pytest.mark.parametrize(("topic", "partition"), [("orders", 0), ("a-b-c", 12), ("x.y_z-1", 3)])
def test_a_partition_directory_is_read_back(topic: str, partition: int) -> None:
    name = partition_dir_name(topic, partition)
    assert parse_partition_dir(name) == PartitionName(topic, partition)


@pytest.mark.parametrize(
    "name", ["orders", "-0", "orders-", "orders-x", f"orders-0.{'0' * 32}-delete",
             "orders-0-future", "orders-0-stray", "orders-٣"],
)  # fmt: skip
def test_other_directories_are_no_live_partitions(name: str) -> None:
    assert parse_partition_dir(name) is None


def test_a_deleted_partition_gets_a_name_that_fits_a_file_system() -> None:
    name = deleted_partition_dir_name("orders", 7, UNIQUE)
    assert name == "orders-7.0123456789abcdef0123456789abcdef-delete"
    long = deleted_partition_dir_name("t" * 249, 7, UNIQUE)
    assert len(long) == 255
    assert long.endswith("-7.0123456789abcdef0123456789abcdef-delete")
    for found in (name, long):
        assert is_deleted_partition_dir(found)
        assert parse_partition_dir(found) is None


@pytest.mark.parametrize("name", ["orders-0", "a-delete", "a.b-delete", ".kafka_cleanshutdown"])
def test_a_living_directory_is_not_taken_for_a_deleted_one(name: str) -> None:
    assert not is_deleted_partition_dir(name)
