"""The recorded answers of Kafka's authorizer, and the requests that they are for, hold together.

What must be so whoever recorded them: rights that are the same by different ACLs give the same
answers, and who may not see a name is not told it.
"""

import json
from pathlib import Path

import pytest

from protocol.api import Api
from protocol.codec import decode, encode_bytes
from protocol.schema import struct_of
from tests.support.authorization import scene, table
from tests.support.authorization.asked import UNASKED, aims, request_for
from tests.support.authorization.survey import Cell
from tests.support.authorization.told import CODES_OF_REFUSAL, Shape, shape_of
from tests.support.clients.served_apis import served_apis

RECORDED = table.load()
LISTS = [
    ("Metadata", "all"), ("DescribeTopicPartitions", "all"),
    ("ListGroups", "guarded"), ("ListTransactions", "guarded"),
]  # fmt: skip


def answers_of(principal: str) -> dict[tuple[str, str, int], Shape]:
    """What one principal is told, whatever its name."""
    return {
        (cell.api, cell.aim, cell.version): _without_name(shape, principal)
        for cell, shape in RECORDED.items()
        if cell.principal == principal
    }


def _without_name(shape: Shape, principal: str) -> Shape:
    named = json.dumps(shape).replace(f': "{principal}"', ': "who asks"')
    found: Shape = json.loads(named)
    return found


def test_the_table_is_of_the_scene_as_it_stands() -> None:
    head = table.head()
    assert head["principals"] == scene.PRINCIPALS
    assert [scene.Acl(*row) for row in head["acls"]] == scene.acls()


def test_a_right_by_prefix_is_worth_a_right_by_name() -> None:
    assert answers_of("prefix") == answers_of("exact")


def test_rights_of_another_host_are_worth_nothing() -> None:
    assert answers_of("elsewhere") == answers_of("none")


@pytest.mark.parametrize(("api", "aim"), LISTS)
def test_a_list_leaves_out_what_may_not_be_described(api: str, aim: str) -> None:
    seen = {
        cell.principal
        for cell, shape in RECORDED.items()
        if (cell.api, cell.aim) == (api, aim) and scene.GUARDED in json.dumps(shape)
    }
    assert {"super", "exact", "prefix", "implied"} <= seen
    assert seen.isdisjoint({"none", "elsewhere", "unseeing"})


def test_nobody_but_the_super_user_is_let_everywhere() -> None:
    refused = {
        cell.principal
        for cell, shape in RECORDED.items()
        if cell.aim in {"guarded", "open"} and not CODES_OF_REFUSAL.isdisjoint(codes_in(shape))
    }
    assert refused == scene.PRINCIPALS.keys() - {scene.SUPER}


def codes_in(shape: object) -> list[int]:
    """Every error code of a shape."""
    if isinstance(shape, list):
        return [code for each in shape for code in codes_in(each)]
    if not isinstance(shape, dict):
        return []
    own = [value for name, value in shape.items() if name.endswith("error_code")]
    return own + [code for value in shape.values() for code in codes_in(value)]


ASKED = [api for api in served_apis().values() if api.name not in UNASKED]


@pytest.mark.parametrize("api", ASKED)
def test_every_version_of_every_api_can_be_asked(api: Api) -> None:
    """Requests fit their schema, and the reader reads the answer's."""
    for version in range(api.min_version, api.max_version + 1):
        for aim in aims(api, version):
            asked = request_for(api, version, aim)
            sent = memoryview(encode_bytes(asked, version))
            assert decode(api.request, version, sent, 0) == asked
        empty = struct_of(api.response, version).cls()
        assert isinstance(shape_of(api, version, empty, {}), dict)


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    some = {cell: shape for cell, shape in RECORDED.items() if cell.api in {"Fetch", "EndTxn"}}
    table.save(tmp_path / "t.json", "4.3.0", some)
    assert table.load(tmp_path / "t.json") == some
    cell = Cell("Fetch", "guarded", "none", 4)
    lied = some | {cell: {"error_code": 0}}
    assert [line for line in table.differences(some, lied) if str(cell) in line] != []
    assert len(table.differences(some, lied)) == 1
