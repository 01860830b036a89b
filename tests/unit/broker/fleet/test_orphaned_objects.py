"""Objects that no row names: removed when they are old, and no others ever."""

from collections.abc import Sequence
from uuid import UUID, uuid4

from broker.fleet.catalog.rows import (
    CatalogCommit,
    CommitAnswer,
    CommitId,
    FleetFacts,
    Incarnation,
    NewTopics,
    NodeAddress,
    PartitionKey,
    Registration,
    Span,
    TopicRow,
)
from broker.fleet.unnamed_objects import (
    LEAST_AGE_MS,
    remove_orphans,
    remove_unnamed,
    sweep_commits,
)
from storage.tier.port import StoreError
from tests.support.fleet.model_catalog import ModelCatalog

NOW = 1_700_000_000_000
TOPIC = UUID(int=7)


class Objects:
    """A store whose clock is another one."""

    def __init__(self, **put_at: int) -> None:
        self.objects = {f"wal/{name}": at for name, at in put_at.items()}
        self.is_away = False

    async def all(self) -> Sequence[tuple[str, int]]:
        return list(self.objects.items())

    async def put(self, commit_id: CommitId, body: bytes) -> str:
        raise AssertionError("nothing is put")

    async def get(self, key: str) -> bytes:
        raise AssertionError("nothing is read")

    async def remove(self, keys: Sequence[str]) -> None:
        if self.is_away:
            raise StoreError("wal", "delete", "it is away")
        for key in keys:
            self.objects.pop(key, None)


async def catalog_with(key: str) -> ModelCatalog:
    """One commit, whose bytes are this object."""
    rows = ModelCatalog(FleetFacts(uuid4(), "cluster", 1), lambda: NOW)
    me = await rows.register(Registration(1, UUID(int=1), NodeAddress("host", 1), "1"))
    assert me == Incarnation(1, 1)
    shards = await rows.take(me, 1)
    await rows.create_topics(NewTopics([TopicRow(TOPIC, "t", [0])]))
    span = Span(PartitionKey(TOPIC, 0), 0, 4, 1, 0, 10, 5)
    order = CatalogCommit(CommitId(me, 1), 3, shards, [span], None, key)
    assert await rows.commit(order) is CommitAnswer.OK
    return rows


async def test_old_ones_that_are_in_no_row_go() -> None:
    rows = await catalog_with("wal/named")
    objects = Objects(named=0, orphan=0, young=1, newest=LEAST_AGE_MS)
    assert await remove_orphans(rows, objects) == 1
    assert set(objects.objects) == {"wal/named", "wal/young", "wal/newest"}
    assert await remove_orphans(rows, objects) == 0


async def test_a_store_without_objects_has_no_orphans() -> None:
    assert await remove_orphans(await catalog_with("wal/named"), Objects()) == 0


async def test_what_could_not_be_removed_is_tried_again() -> None:
    rows = await catalog_with("wal/named")
    await rows.delete_topic(TOPIC, -1)
    objects = Objects(named=0)
    objects.is_away = True
    try:
        await remove_unnamed(rows, objects)
    except StoreError:
        assert await rows.trash(9) == ["wal/named"]
    objects.is_away = False
    assert await remove_unnamed(rows, objects) == 1
    assert objects.objects == {}
    assert await rows.trash(9) == []


async def test_rows_of_commits_that_were_left_behind_go() -> None:
    rows = await catalog_with("wal/named")
    rows.parts[PartitionKey(TOPIC, 0)].spans = []
    assert await sweep_commits(rows, -1) == 2
    assert await rows.trash(9) == ["wal/named"]
    assert await sweep_commits(rows, -1) == 0
