"""The registry holds every file of protocol/apis once, and refuses what contradicts itself."""

import subprocess
import sys
from pathlib import Path

import pytest

import protocol.apis
from protocol.api import Api
from protocol.apis.fetch import FetchResponse
from protocol.apis.metadata import MetadataRequest, MetadataResponse
from protocol.apis.produce import ProduceResponse
from protocol.registry import api_of, apis, by_name, collect
from protocol.schema import NEVER

METADATA = Api(3, "Metadata", 0, 13, MetadataRequest, MetadataResponse)


def test_every_file_is_an_api() -> None:
    files = {p.stem for p in Path(protocol.apis.__file__).parent.glob("*.py")} - {"__init__"}
    assert {api.module for api in apis().values()} == files


def test_the_apis_of_the_first_client_are_there() -> None:
    assert {(api.key, api.name) for api in apis().values()} >= {
        (0, "Produce"), (1, "Fetch"), (2, "ListOffsets"), (3, "Metadata"), (10, "FindCoordinator"),
        (18, "ApiVersions"), (19, "CreateTopics"), (20, "DeleteTopics"), (21, "DeleteRecords"),
        (22, "InitProducerId"), (23, "OffsetForLeaderEpoch"), (32, "DescribeConfigs"),
        (33, "AlterConfigs"), (35, "DescribeLogDirs"), (37, "CreatePartitions"),
        (44, "IncrementalAlterConfigs"), (60, "DescribeCluster"), (61, "DescribeProducers"),
        (75, "DescribeTopicPartitions"),
    }  # fmt: skip


def test_apis_come_in_the_order_of_keys_and_by_name() -> None:
    assert list(apis()) == sorted(apis())
    assert by_name()["ListOffsets"] is apis()[2]


def test_a_request_knows_its_api_and_loads_no_other() -> None:
    for api in apis().values():
        assert api_of(api.request) is api
    for other in (FetchResponse, int):
        with pytest.raises(ValueError, match="is no request of an API"):
            api_of(other)
    asked = "from protocol.registry import api_of\nfrom protocol.apis.fetch import FetchRequest\n"
    told = "import sys\nprint(api_of(FetchRequest).name, 'protocol.apis.produce' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", asked + told], capture_output=True, check=True)
    assert run.stdout == b"Fetch False\n"


def test_the_registry_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        apis()[3] = METADATA  # type: ignore[index]


def test_a_file_without_an_api_is_refused() -> None:
    with pytest.raises(ValueError, match=r"metadata\.py declares no API"):
        collect([("metadata", None)])


def test_an_api_in_the_file_of_another_is_refused() -> None:
    with pytest.raises(ValueError, match=r"belongs into protocol/apis/metadata\.py"):
        collect([("produce", METADATA)])


def test_a_key_belongs_to_one_api() -> None:
    twin = Api(3, "Metadata", 0, 1, MetadataRequest, MetadataResponse)
    with pytest.raises(ValueError, match="have both key 3"):
        collect([("metadata", METADATA), ("metadata", twin)])


@pytest.mark.parametrize(("low", "high"), [(-1, 3), (4, 3)])
def test_versions_are_a_range(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="versions"):
        Api(3, "Metadata", low, high, MetadataRequest, MetadataResponse)


def test_both_directions_turn_flexible_together() -> None:
    mixed = type("Mixed", (), {"__flexible_from__": 8})
    with pytest.raises(ValueError, match="flexible"):
        Api(0, "Produce", 3, 13, mixed, ProduceResponse)


@pytest.mark.parametrize("api", apis().values(), ids=lambda api: api.name)
def test_every_field_belongs_to_a_version_that_is_served(api: Api) -> None:
    """A field of versions that nobody can send would be dead text."""
    pending, seen = [api.request, api.response], set()
    while pending:
        cls = pending.pop()
        seen.add(cls)
        for name, spec in cls.__fields__.items():
            assert spec.since <= api.max_version, (cls, name)
            assert api.min_version <= spec.until, (cls, name)
            element = getattr(spec.wire, "element", spec.wire)
            if isinstance(element, type) and element not in seen:
                pending.append(element)


@pytest.mark.parametrize("name", ["Produce", "Fetch", "ListOffsets"])
def test_records_travel_in_every_version_there_ever_was(name: str) -> None:
    assert by_name()[name].min_version == 0


def test_flexible_versions_go_on_for_ever() -> None:
    produce = by_name()["Produce"]
    assert [produce.is_flexible(v) for v in (8, 9, 13)] == [False, True, True]
    never = {api.name for api in apis().values() if api.flexible_from == NEVER}
    assert never == {"OffsetDelete", "SaslHandshake"}
    assert all(api.flexible_from >= 0 for api in apis().values())
    assert (produce.has(-1), produce.has(0), produce.has(13), produce.has(14)) == (
        False, True, True, False,
    )  # fmt: skip
