"""Start of a node: what the fleet decides is the fleet's before the first client comes."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from broker.daemon.app import StartGivenUp
from broker.guards.crash_guard import FILE_NAME
from config.errors import ConfigError
from storage.files.checkpoints import decode_rows
from tests.support.worlds.app import make_broker

FIRST_ID = 7000
COUNTED = {"horolog.crash.loop.starts": "5"}


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


class SilentFleet(SmallFleet):
    """Of a database that does not answer one question."""

    def __init__(self, question: str) -> None:
        self.asked = asyncio.Event()
        setattr(self, question, self._waits)

    async def _waits(self) -> str:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody answers")


@pytest.mark.parametrize("question", ["join", "learn"])
async def test_a_start_that_waits_for_its_fleet_can_be_stopped(
    tmp_path: Path, question: str
) -> None:
    """A database may be away for hours."""
    broker = make_broker(tmp_path, COUNTED)
    services: Any = broker.services
    fleet = services.fleet = SilentFleet(question)
    start = asyncio.ensure_future(broker.start())
    await fleet.asked.wait()
    broker.services.stopping.set()
    broker.give_up()
    await asyncio.wait([start], timeout=20)
    assert start.done(), "it goes on waiting"
    assert isinstance(start.exception(), StartGivenUp)
    assert starts_in(tmp_path) == 0, "that is no crash"


async def test_who_is_to_stop_before_it_asks_does_not_ask(tmp_path: Path) -> None:
    broker = make_broker(tmp_path)
    services: Any = broker.services
    fleet = services.fleet = SilentFleet("join")
    broker.services.stopping.set()
    broker.give_up()
    with pytest.raises(StartGivenUp):
        await broker.start()
    assert not fleet.asked.is_set()


async def test_a_start_that_is_refused_at_its_end_is_no_crash(tmp_path: Path) -> None:
    """Five of them, under a restart policy, would have the next broker refuse all records."""
    url = "sasl.oauthbearer.jwks.endpoint.url"
    settings = {
        **COUNTED,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        url: f"file://{tmp_path}/no-keys.json",
        "sasl.oauthbearer.expected.issuer": "https://issuer.test",
        "sasl.oauthbearer.expected.audience": "horolog",
    }
    data = tmp_path / "data"
    with pytest.raises(ConfigError, match=url):
        await make_broker(data, settings).start()
    assert starts_in(data) == 0
    with pytest.raises(ConfigError, match=url):
        await make_broker(data, settings).start()


def starts_in(directory: Path) -> int:
    """Starts that are remembered as crashes."""
    file = directory / FILE_NAME
    text = file.read_text() if file.exists() else ""
    return len(list(decode_rows(str(file), text, columns=1))) if text else 0
