"""Commits behind a manifest that was named while the answer to one of them was on its way."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from broker.fleet.catalog.port import CatalogAway
from broker.fleet.catalog.rows import CatalogCommit, CommitAnswer, PartitionKey, TopicRow
from tests.support.fleet.machines.commit_store import CommitsInMemory
from tests.support.fleet.machines.sim_host import Disk, SimHost, Value
from tests.support.fleet.model_catalog import ModelCatalog
from tests.support.fleet.small_fleet import NOW, TIMES, SmallNode, rows_with
from tests.support.fleet.virtual_loop import run_virtual

TOPIC = UUID(int=100)
KEY = PartitionKey(TOPIC, 0)


class Lossy:
    """Commits that have no answer while it loses them; `is_done`: they count all the same."""

    def __init__(self, rows: ModelCatalog, *, is_done: bool) -> None:
        self.loses = False
        self._is_done = is_done
        self._does = rows.commit
        rows.commit = self.commit  # type: ignore[method-assign]

    async def commit(self, order: CatalogCommit) -> CommitAnswer:
        if self.loses and not self._is_done:
            raise CatalogAway("not done")
        answer = await self._does(order)
        if self.loses:
            raise CatalogAway("the answer was lost")
        return answer


@pytest.mark.parametrize("is_done", [True, False])
def test_a_checkpoint_behind_a_lost_answer_ends_no_life(is_done: bool) -> None:
    """The rows have the commit before no longer, or have it still."""

    async def story() -> None:
        rows = await rows_with(TopicRow(TOPIC, "t", [0]))
        lossy, host = Lossy(rows, is_done=is_done), SimHost(Disk())
        node = SmallNode(
            rows, 1, host, store=CommitsInMemory(), times=TIMES._replace(checkpoint=2.0)
        )
        await asyncio.sleep(0.5)
        life, log = node.node.life, host.served[KEY]
        assert life is not None

        def write(number: int) -> None:
            batches: Any = [Value(1, number)]
            end = log.append(batches, number, NOW)
            life.committer.request(log.owned, end, lambda _: None)

        write(0)
        await asyncio.sleep(0.05)
        lossy.loses = True
        write(1)
        await asyncio.sleep(0.02)
        assert await life.trimming.name_manifest(log.owned, 1, 1)
        await asyncio.sleep(5)
        assert not node.tally.checkpoints
        lossy.loses = False
        await asyncio.sleep(5)
        write(2)
        await asyncio.sleep(5)
        assert node.tally.lives == 1
        [row] = await rows.partitions([0])
        assert [each.span.base_offset for each in row.spans if each.object_key] == [1, 2]
        assert [each.span.base_offset for each in row.spans] == [1, 2] if is_done else [0, 1, 2]
        await node.stop()

    run_virtual(story())
