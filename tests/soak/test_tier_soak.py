"""The verdict of a run through a tier can be bad."""

import pytest

from tests.soak.tier.records import Contents, differences, key_of, time_of, value_of

OTHER_VALUE = "r: 0/1 has another value than was written"


def written(*numbers: int, partition: int = 0) -> Contents:
    """A writer that has written these to a partition."""
    contents = Contents("writer")
    for number in numbers:
        contents.add(
            partition, number, time_of(number), key_of(partition, number),
            value_of(partition, number),
        )  # fmt: skip
    return contents


def reader(*numbers: int, **other: object) -> Contents:
    """One who has read these; `other` stands in the place of a part of the last one."""
    contents = Contents("r")
    for number in numbers:
        record = {
            "time_ms": time_of(number),
            "key": key_of(0, number),
            "value": value_of(0, number),
        }
        if number == numbers[-1]:
            record.update(other)
        contents.take(0, number, **record)  # type: ignore[arg-type]
    return contents


def test_equal_contents_are_no_fault() -> None:
    read = reader(0, 1, 2)
    assert read.faults == differences(written(0, 1, 2), read) == []
    assert (read.records, read.size_bytes) == (3, written(0, 1, 2).size_bytes)


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        (reader(0, 2), "r: partition 0: offset 2 came, 1 was next"),
        (reader(0, 0), "r: partition 0: offset 0 came, 1 was next"),
        (reader(0, 1, time_ms=5), "r: 0/1 has the time 5"),
        (reader(0, 1, key=b"other"), "r: 0/1 has the key b'other'"),
        (reader(0, 1, value=value_of(0, 1)[:-1] + b"!"), OTHER_VALUE),
        (reader(0, 1, value=value_of(1, 1)), OTHER_VALUE),
    ],
)  # fmt: skip
def test_each_part_of_a_record_is_compared(read: Contents, fault: str) -> None:
    assert read.faults == [fault]
    assert differences(written(0, 1), read) != []


def test_the_end_has_to_be_reached() -> None:
    missing = differences(written(0, 1, 2), reader(0, 1))
    assert missing == ["r: partition 0 ends at 2 instead of 3"]
    assert len(differences(written(0, partition=1), reader(0))) == 1
