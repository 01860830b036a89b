"""Any name of a group or of a transactional id is one part of a path, whatever stands in it."""

import asyncio
from collections.abc import AsyncIterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from broker.cli.admin_client import in_path
from broker.cli.main import main
from broker.daemon.app import Broker
from protocol.apis import create_topics, init_producer_id, offset_commit
from tests.support.clients.admin import Admin
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import client_of, running_broker

NAMES = [
    "a",
    "a/reset",
    "a/b/c",
    "new\nline",
    "tab\tand space",
    "100%",
    "%2F",
    "a?b=c#d",
    "..",
    ".",
    "naïve ☕",
    "a+b",
    "semi;colon\\back",
    "/",
]


LOADING = {14, 15, 16}


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    settings = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    async with running_broker(tmp_path / "data", settings) as broker, client_of(broker) as client:
        topic = create_topics.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        await client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
        for number, name in enumerate(NAMES):
            await commit(client, name, number)
            await begin(client, name)
        yield broker


async def commit(client: AsyncWireClient, group: str, offset: int) -> None:
    """Once the groups are loaded."""
    part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    parts = [offset_commit.OffsetCommitRequestTopic(name="t", partitions=[part])]
    request = offset_commit.OffsetCommitRequest(group_id=group, topics=parts)
    for _ in range(200):
        answer = await client.call(request, 8)
        code = answer.topics[0].partitions[0].error_code
        if code not in LOADING:
            break
        await asyncio.sleep(0.05)
    assert code == 0


async def begin(client: AsyncWireClient, transactional_id: str) -> None:
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=1000,
        producer_id=-1,
        producer_epoch=-1,
    )
    for _ in range(200):
        code = (await client.call(request, 4)).error_code
        if code not in LOADING:
            break
        await asyncio.sleep(0.05)
    assert code == 0


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_is_found_by_path_and_by_command(broker: Broker, name: str) -> None:
    admin = Admin(str(broker.http))
    for path, field in (("groups", "group"), ("transactions", "transactional_id")):
        found = await asyncio.to_thread(admin.ask, "GET", f"/api/{path}/{in_path(name)}")
        assert (found.status, found.content[field]) == (200, name)
        arguments = [path, "--http", str(broker.http), "--json", "--", name]
        assert await asyncio.to_thread(main, arguments) == 0
        page = [path, "--http", str(broker.http), "--", name]
        assert await asyncio.to_thread(main, page) == 0
    reset = f"/api/groups/{in_path(name)}/reset"
    shown = await asyncio.to_thread(admin.ask, "GET", reset, to="0")
    assert (shown.status, shown.content["group"]) == (200, name)
    assert shown.content["partitions"][0]["offset"] == NAMES.index(name)


async def test_a_slash_in_a_name_leads_to_no_other_route(broker: Broker) -> None:
    admin = Admin(str(broker.http))
    one = await asyncio.to_thread(admin.ask, "GET", "/api/groups/a%2Freset")
    assert one.content["group"] == "a/reset"
    assert "member_states" in one.content, "a group, not what a reset of another would do"


async def test_a_path_that_is_no_utf_8_is_refused(broker: Broker) -> None:
    admin = Admin(str(broker.http))
    refused = await asyncio.to_thread(admin.ask, "GET", "/api/groups/%ff")
    assert (refused.status, refused.code) == (400, "bad_path")


async def test_a_word_that_is_neither_true_nor_false_is_refused(broker: Broker) -> None:
    admin = Admin(str(broker.http))
    refused = await asyncio.to_thread(admin.ask, "GET", "/api/transactions?open=maybe")
    assert (refused.status, refused.code) == (400, "bad_parameter")
    assert "open: 'maybe' is neither true nor false" in refused.message
    for word, count in (("true", 0), ("false", len(NAMES))):
        asked = await asyncio.to_thread(admin.ask, "GET", f"/api/transactions?open={word}")
        assert len(asked.content["transactions"]) == count


async def test_absolute_targets_and_queries_reach_the_same_route(broker: Broker) -> None:
    def ask() -> int:
        connection = HTTPConnection(str(broker.http), timeout=10)
        try:
            connection.request("GET", f"http://{broker.http}/api/groups/a%2Freset?x=1")
            return connection.getresponse().status
        finally:
            connection.close()

    assert await asyncio.to_thread(ask) == 400  # found, and x is no parameter
