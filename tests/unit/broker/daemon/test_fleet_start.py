"""Start of a node: what the fleet decides is the fleet's before the first client comes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tests.support.worlds.app import make_broker

FIRST_ID = 7000


class Stopped(Exception):  # noqa: N818 - what happened
    """The test has seen enough."""


class SmallFleet:
    """Gives ids of producers, once it decides."""

    fleet_id = UUID(int=1)

    async def join(self) -> str:
        return "AAAAAAAAAAAAAAAAAAAAAQ"

    async def learn(self) -> None:
        """Nothing is there."""

    def decides(self) -> Any:
        async def producer_ids(_: int) -> int:
            return FIRST_ID

        return SimpleNamespace(producer_ids=producer_ids)


async def test_the_first_client_gets_a_producer_id_of_the_fleet(tmp_path: Path) -> None:
    """One of this directory could be another producer's at another node."""
    broker = make_broker(tmp_path)
    services: Any = broker.services
    services.fleet, given = SmallFleet(), list[int]()

    async def accept(*_: Any) -> None:
        given.append(await services.producer_ids.allocate())
        raise Stopped

    services.server.accept = accept
    with pytest.raises(Stopped):
        await broker.start()
    assert given == [FIRST_ID]
