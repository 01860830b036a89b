"""Whose limit holds, and which limits cannot be."""

import json

import pytest

from broker.quotas.quota_file import parse, render
from broker.quotas.table import MAX_ENTITIES, Entity, Limits, QuotaTable, alter, entity_of
from protocol.errors import ErrorCode, KafkaError
from storage.errors import CorruptCheckpoint, NewerFormat

RATE = "producer_byte_rate"
PRECEDENCE: list[tuple[list[tuple[str, str | None]], tuple[str, str]]] = [
    ([("user", "u"), ("client-id", "c")], ("u", "c")),
    ([("user", "u"), ("client-id", None)], ("u", "c")),
    ([("user", "u")], ("u", "")),
    ([("user", None), ("client-id", "c")], ("u", "c")),
    ([("user", None), ("client-id", None)], ("u", "c")),
    ([("user", None)], ("u", "")),
    ([("client-id", "c")], ("", "c")),
    ([("client-id", None)], ("", "c")),
]


Change = tuple[list[tuple[str, str | None]], dict[str, float | None]]


def table_of(*changes: Change) -> QuotaTable:
    entries: dict[Entity, Limits] = {}
    for parts, limits in changes:
        alter(entries, entity_of(parts), limits)
    return QuotaTable(entries)


def test_the_most_special_limit_holds() -> None:
    changes: list[Change] = []
    for rank, (parts, shared_by) in reversed(list(enumerate(PRECEDENCE, 1))):
        changes.append((parts, {RATE: float(rank)}))
        assert table_of(*changes).limit(RATE, "u", "c") == (float(rank), shared_by)


def test_each_kind_of_limit_is_looked_for_by_itself() -> None:
    table = table_of(
        ([("user", "u")], {"request_percentage": 50.0}), ([("client-id", None)], {RATE: 7.0})
    )
    limit = table.limit(RATE, "u", "c")
    assert limit is not None
    assert limit.bound == 7
    assert table.limit("consumer_byte_rate", "u", "c") is None


def test_a_limit_of_another_says_nothing() -> None:
    table = table_of(
        ([("user", "v")], {RATE: 1.0}), ([("client-id", "d"), ("user", None)], {RATE: 1.0})
    )
    assert table.limit(RATE, "u", "c") is None


def test_the_last_limit_of_an_entity_takes_it_along() -> None:
    user: list[tuple[str, str | None]] = [("user", "u")]
    assert table_of((user, {RATE: 1.0}), (user, {RATE: None})) == QuotaTable()


def test_there_is_an_end_to_entities_and_old_ones_can_still_be_changed() -> None:
    many: list[Change] = [([("user", str(n))], {RATE: 1.0}) for n in range(MAX_ENTITIES)]
    entries = dict(table_of(*many).entries)
    with pytest.raises(KafkaError, match="already"):
        alter(entries, entity_of([("user", "more")]), {RATE: 1.0})
    alter(entries, entity_of([("user", "7")]), {RATE: 2.0})
    assert len(entries) == MAX_ENTITIES


@pytest.mark.parametrize(
    ("parts", "key", "value"),
    [
        ([], RATE, 1.0),
        ([("user", "")], RATE, 1.0),
        ([("client-id", "c" * 257)], RATE, 1.0),
        ([("group", "g")], RATE, 1.0),
        ([("ip", "127.0.0.1")], RATE, 1.0),
        ([("ip", "127.0.0.1")], "controller_mutation_rate", 1.0),
        ([("ip", "127.0.0.1")], "connection_creation_rate", 1.5),
        ([("ip", "127.0.0.1")], "connection_creation_rate", 0.0),
        ([("ip", "127.0.0.1")], "connection_creation_rate", 2.0**31),
        ([("ip", "127.0.0.1")], "connection_creation_rate", float("nan")),
        ([("ip", "")], "connection_creation_rate", 1.0),
        ([("ip", "localhost")], "connection_creation_rate", 1.0),
        ([("ip", "256.1.1.1")], "connection_creation_rate", 1.0),
        ([("ip", "127.0.0.1"), ("user", "u")], "connection_creation_rate", 1.0),
        ([("user", "u")], "connection_creation_rate", 1.0),
        ([("user", "u")], "controller_mutation_rate", 0.0),
        ([("user", "u")], "nonsense", 1.0),
        ([("user", "u")], RATE, 1.5),
        ([("user", "u")], RATE, 0.0),
        ([("user", "u")], RATE, -1.0),
        ([("user", "u")], RATE, float("inf")),
        ([("user", "u")], "request_percentage", float("inf")),
        ([("user", "u")], "request_percentage", float("nan")),
    ],
)
def test_what_cannot_be_is_refused(
    parts: list[tuple[str, str | None]], key: str, value: float
) -> None:
    with pytest.raises(KafkaError) as refused:
        table_of((parts, {key: value}))
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_the_file_gives_back_what_was_set() -> None:
    limits: dict[str, float | None] = {RATE: 5.0, "request_percentage": 0.5}
    table = table_of(*((parts, limits) for parts, _ in PRECEDENCE))
    assert parse("f", render(table).decode()) == table


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": 1}',
        '{"format": 1, "quotas": [{"entity": {}, "limits": {"producer_byte_rate": 1}}]}',
        '{"format": 1, "quotas": [{"entity": {"user": "u"}, "limits": {}}]}',
        '{"format": 1, "quotas": [{"entity": {"user": "u"}, "limits": {"x": 1}}]}',
    ],
)
def test_a_damaged_file_is_not_taken_for_no_limits(text: str) -> None:
    with pytest.raises(CorruptCheckpoint, match="quotas"):
        parse("f", text)


def test_a_newer_file_is_left_alone() -> None:
    with pytest.raises(NewerFormat):
        parse("f", '{"format": 3, "quotas": 5}')


@pytest.mark.parametrize(
    ("parts", "key", "number"),
    [
        ([("user", "u")], RATE, 1),
        ([("user", "u")], "controller_mutation_rate", 2),
        ([("ip", "10.0.0.1")], "connection_creation_rate", 2),
        ([("ip", None)], "connection_creation_rate", 2),
    ],
)
def test_an_earlier_release_can_tell_what_it_does_not_know(
    parts: list[tuple[str, str | None]], key: str, number: int
) -> None:
    table = table_of((parts, {key: 5.0}))
    written = render(table).decode()
    assert json.loads(written)["format"] == number
    assert parse("f", written) == table


def test_no_default_holds_for_a_super_user() -> None:
    table = table_of(
        ([("user", None)], {RATE: 1024.0}),
        ([("client-id", None)], {RATE: 1024.0}),
        ([("user", "u"), ("client-id", "slow")], {RATE: 7.0}),
    )
    assert table.limit(RATE, "u", "c") is not None
    assert table.limit(RATE, "u", "c", is_super=True) is None
    named = table.limit(RATE, "u", "slow", is_super=True)
    assert named is not None
    assert named.bound == 7
