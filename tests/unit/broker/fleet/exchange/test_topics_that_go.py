"""Topics that are deleted while their fleet is exported are left out; all others are there."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest

from broker.fleet.bodies import BodyGone
from broker.fleet.catalog.rows import (
    CatalogCommit,
    CommitId,
    FleetFacts,
    NewTopics,
    NodeAddress,
    PartitionKey,
    Registration,
    Span,
    TopicRow,
    Topics,
)
from broker.fleet.committer import CommitStore
from broker.fleet.exchange.export import Exported, ExportSource, FleetExport
from storage.directory.topics_file import FILE_NAME
from storage.directory.topics_file import parse as parse_topics
from storage.posix import real_env
from storage.tier.port import ObjectStore
from tests.support.fleet.model_catalog import ModelCatalog

A, B, AGAIN = (UUID(int=each) for each in (10, 11, 12))


class Quiet:
    """Progress that nobody sees."""

    def partitions(self, count: int) -> None: ...

    def partition(self, keys: object) -> None: ...


class BusyRows(ModelCatalog):
    """Something happens while a commit, or all topics, are being read."""

    at_body: Callable[[], Awaitable[object]] | None = None
    at_topics: Callable[[], Awaitable[object]] | None = None

    async def body(self, commit_id: CommitId) -> bytes | None:
        if self.at_body is not None:
            await self.at_body()
        return None  # its bytes are in an object by now

    async def topics(self) -> Topics:
        if self.at_topics is not None:
            await self.at_topics()
        return await super().topics()


async def busy_rows() -> BusyRows:
    rows = BusyRows(FleetFacts(UUID(int=1), "cluster", 1), lambda: 1)
    await rows.create_topics(NewTopics([TopicRow(A, "a", [0, 0]), TopicRow(B, "b", [0])]))
    return rows


async def commit(rows: BusyRows, topic_id: UUID, number: int) -> None:
    me = await rows.register(Registration(1, UUID(int=1), NodeAddress("h", 1), "1"))
    assert me is not None
    span = Span(PartitionKey(topic_id, number), 0, 0, 1, 0, 1, 1)
    await rows.commit(CatalogCommit(CommitId(me, 1), 1, await rows.take(me, 1), [span], b"x"))


async def exported(rows: BusyRows, place: Path) -> Exported:
    nowhere = cast("CommitStore", None), cast("ObjectStore", None)
    return await FleetExport(ExportSource(rows, *nowhere), real_env(), str(place)).run(Quiet())


def found(place: Path) -> tuple[dict[str, UUID], set[str]]:
    """Topics, and directories of partitions that a broker would take for some."""
    state = parse_topics((place / FILE_NAME).read_bytes())
    names = {each for each in os.listdir(place) if (place / each).is_dir()}
    return (
        {name: each.topic_id for name, each in state.topics.items()},
        {each for each in names if not each.endswith("-delete")},
    )


async def test_one_that_goes_while_it_is_read(tmp_path: Path) -> None:
    """Also its partitions that were read before."""
    rows = await busy_rows()
    await commit(rows, A, 1)
    rows.at_body = lambda: rows.delete_topic(A, 0)
    assert await exported(rows, tmp_path / "one") == Exported(1, 1, 0)
    assert found(tmp_path / "one") == ({"b": B}, {"b-0"})


async def test_one_that_goes_when_it_was_read_and_is_made_again(tmp_path: Path) -> None:
    """A broker would refuse directories that are of another topic of this name."""
    rows = await busy_rows()

    async def again() -> None:
        await rows.delete_topic(A, 0)
        await rows.create_topics(NewTopics([TopicRow(AGAIN, "a", [0])]))

    rows.at_topics = again
    assert await exported(rows, tmp_path / "one") == Exported(1, 1, 0)
    assert found(tmp_path / "one") == ({"b": B}, {"b-0"})


async def test_bytes_that_are_nowhere_end_the_export(tmp_path: Path) -> None:
    """The partition is there still: it may not be left out."""
    rows = await busy_rows()
    await commit(rows, A, 1)
    with pytest.raises(BodyGone):
        await exported(rows, tmp_path / "one")
