"""The topics file: the same state gives the same bytes, and only what was written is read."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.directory.topics_file import CatalogState, TopicEntry, id_of, id_text, parse, render
from storage.errors import CorruptCheckpoint, NewerFormat

names = st.text("abcXYZ019._-", min_size=1, max_size=30).filter(lambda name: name.strip("."))
entries = st.builds(TopicEntry, st.uuids(), st.integers(1, 10_000))
states = st.builds(
    CatalogState, st.dictionaries(names, entries, max_size=5), st.frozensets(st.uuids(), max_size=3)
)


@given(states)
def test_what_is_written_is_read(state: CatalogState) -> None:
    assert parse(render(state)) == state


def test_the_order_of_creation_does_not_show() -> None:
    one, two = TopicEntry(UUID(int=1), 1), TopicEntry(UUID(int=2), 2)
    assert render(CatalogState({"a": one, "b": two})) == render(CatalogState({"b": two, "a": one}))


def test_a_topic_has_a_line_that_an_operator_can_read() -> None:
    state = CatalogState({"orders": TopicEntry(UUID(int=0xABC), 3)})
    assert b'"orders": {"id": "AAAAAAAAAAAAAAAAAAAKvA", "partitions": 3}' in render(state)


@given(st.uuids())
def test_ids_are_written_as_kafka_writes_them(topic_id: UUID) -> None:
    text = id_text(topic_id)
    assert len(text) == 22
    assert id_of(text) == topic_id


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"format": 1}',
        b'{"format": 1, "topics": {"a": {"id": "x", "partitions": 1}}, "deleted": []}',
        b'{"format": 1, "topics": {"a": {}}, "deleted": []}',
        b'{"format": 1, "topics": [], "deleted": []}',
        b"\xff\xfe",
    ],
)
def test_damage_is_refused_and_never_taken_for_an_empty_file(data: bytes) -> None:
    with pytest.raises(CorruptCheckpoint, match=r"horolog-topics\.json"):
        parse(data)


@given(states, st.data())
def test_every_truncation_is_refused(state: CatalogState, data: st.DataObject) -> None:
    whole = render(state)
    cut = data.draw(st.integers(0, len(whole) - 2))
    with pytest.raises(CorruptCheckpoint):
        parse(whole[:cut])


def test_a_newer_format_is_refused_by_name() -> None:
    with pytest.raises(NewerFormat, match="format 2"):
        parse(b'{"format": 2, "topics": {}, "deleted": []}')
