"""The list of bad records in an answer: the bytes are those of the schema, element by element."""

from array import array
from importlib import import_module
from types import ModuleType

import pytest

from protocol.apis.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from protocol.codec import encode_bytes
from protocol.records.faults import texts_of
from tests.support.records.mistimed_records import SOURCE

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
TEXTS = texts_of("Time ", [f" is wrong ({verdict})" for verdict in range(15)], "No key")
ROWS = [(0, 17, 1), (3, INT64_MIN, 14), (70_000, INT64_MAX, 2), (99_999, 5, 255)]


@pytest.fixture(params=["built", "source"])
def faults(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "built":
        return import_module("protocol.records.faults")
    return SOURCE["faults"]


def response(errors: list[BatchIndexAndErrorMessage]) -> ProduceResponse:
    partition = PartitionProduceResponse(record_errors=errors)
    return ProduceResponse(responses=[TopicProduceResponse(partition_responses=[partition])])


@pytest.mark.parametrize(("version", "compact"), [(8, False), (9, True), (12, True)])
@pytest.mark.parametrize("length", [1, 120, 127, 128, 300])
def test_the_bytes_are_those_of_the_schema(
    faults: ModuleType, version: int, compact: bool, length: int
) -> None:
    texts = texts_of("x" * length, [f" is wrong ({verdict})" for verdict in range(15)], "No key")
    elements = [
        BatchIndexAndErrorMessage(
            batch_index=index, batch_index_error_message=faults.text_of(at, verdict, texts)
        )
        for index, at, verdict in ROWS
    ]
    rows = array("q", [number for row in ROWS for number in row])
    encoded = bytes(faults.encode_faults(rows, texts, compact))
    assert encoded in encode_bytes(response(elements), version)
    assert encode_bytes(response([]), version) != encode_bytes(response(elements), version)


def test_texts(faults: ModuleType) -> None:
    assert faults.text_of(-5, 3, TEXTS) == "Time -5 is wrong (3)"
    assert faults.text_of(-5, 255, TEXTS) == "No key"


def test_good_records_and_mild_verdicts_are_no_faults(faults: ModuleType) -> None:
    outline = array("q", [number for at in range(5) for number in (0,) * 6 + (at * 10, 0)])
    rows = faults.collect_faults(outline, 100, 5, bytes([0, 1, 14, 15, 255]), 15, 255)
    assert list(rows) == [101, 10, 1, 102, 20, 14, 104, 40, 255]


def test_an_empty_list(faults: ModuleType) -> None:
    assert faults.encode_faults(array("q"), TEXTS, True) == b""


@pytest.mark.parametrize("row", [[0, 1], [0, 1, -1]])
def test_what_is_no_row_is_refused(faults: ModuleType, row: list[int]) -> None:
    with pytest.raises(ValueError, match="no rows of faults"):
        faults.encode_faults(array("q", row), TEXTS, True)
