"""The HTTP port of a broker with access control: each sees what it may, and nothing of the rest."""

import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from broker.http.port.route import HttpRoute
from broker.http.routes import ROUTES
from broker.security.acl import Acl
from broker.security.credentials import CredentialKey, Mechanism
from protocol.acls import CLUSTER_NAME, AclOperation, AclPermission, PatternType, ResourceType
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.records.builder import build_batch
from tests.integration.test_admin_api import World, called
from tests.integration.test_admin_trail import Lines, all_told, told
from tests.support.clients.admin import Answered
from tests.support.worlds.app import client_of, frozen_at, running_broker
from tests.support.worlds.known_users import made

START = 1_709_121_600_000
READER, OPERATOR = "r" * 16, "o" * 16
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
}
HIDDEN, MISSING = "hidden", "missin"
NAMES = ("shown", HIDDEN)
T, G, X, C = (
    ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID, ResourceType.CLUSTER,
)  # fmt: skip
O = AclOperation  # noqa: E741


__all__ = ["told"]  # a fixture


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def basic(user: str, password: str = "pencil") -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


NOBODY: dict[str, str] = {}


class Guarded(World):
    """A broker with access control: `alice` may see what is called `shown`, and nothing else."""

    async def allow(self, user: str, kind: ResourceType, name: str, operation: O) -> None:
        acl = Acl(
            kind, PatternType.LITERAL, name, f"User:{user}", "*", operation, AclPermission.ALLOW
        )
        await self.broker.services.authority.add([acl])

    async def asked(
        self, who: Mapping[str, str], path: str, method: str = "GET", **parameters: object
    ) -> Answered:
        return await self.ask(method, path, dict(who), **parameters)

    async def scraped(self, who: Mapping[str, str], path: str = "/metrics") -> str:
        def blocking() -> str:
            from urllib.request import Request, urlopen

            asked = Request(f"http://{self.broker.http}{path}", headers=dict(who))
            with urlopen(asked, timeout=20) as answer:
                return str(answer.read().decode())

        return await called(blocking)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Guarded]:
    file = tmp_path / "tokens"
    file.write_text(f"read:{READER}\noperate:{OPERATOR}\n")
    file.chmod(0o600)
    settings = {**SETTINGS, "horolog.http.token.file": str(file)}
    async with (
        running_broker(tmp_path / "data", settings, held_clock=frozen_at(START)) as broker,
        client_of(broker) as client,
    ):
        services, guarded = broker.services, Guarded(broker, client)
        users = ("alice", "root")
        credential = made(Mechanism.SCRAM_SHA_256)
        async with services.users.changing:
            await services.users.store(
                {CredentialKey(each, Mechanism.SCRAM_SHA_256): credential for each in users}
            )
        for each in (T, G):
            await guarded.allow("ANONYMOUS", each, "*", O.ALL)
        for name in NAMES:
            await guarded.make_topic(name)
            await guarded.produce(name, START)
            await guarded.commit(name, name)
        everybody = [acl for acl in services.authority.book.acls if acl.principal.endswith("MOUS")]
        services.authority.book = services.authority.book.without(set(everybody))
        for kind in (T, G, X):
            await guarded.allow("alice", kind, "shown", O.DESCRIBE)
        yield guarded


def paths_with(route: HttpRoute, name: str) -> str:  # type: ignore[type-arg]
    return route.path.replace(f"{{{route.part}}}", name)


NAMED = [each for each in ROUTES if each.part]
EXTRA = {
    "to": "2024-02-28T12:00:00Z", "timestamp": START, "from": 0, "factor": 1, "by": "1s",
}  # fmt: skip


def needed(route: HttpRoute) -> dict[str, object]:  # type: ignore[type-arg]
    return {each.name: EXTRA[each.name] for each in route.parameters if each.name in EXTRA}


def without_names(answered: Answered) -> tuple[int, str]:
    """An answer in which hidden and missing are the same word."""
    return answered.status, json.dumps(answered.content).replace(HIDDEN, MISSING)


async def test_what_is_hidden_looks_like_what_is_missing(world: Guarded) -> None:
    for route in NAMED:
        for who in (basic("alice"), NOBODY):
            hidden, missing = [
                without_names(
                    await world.asked(who, paths_with(route, name), route.method, **needed(route))
                )
                for name in (HIDDEN, MISSING)
            ]
            assert hidden == missing, route.path
            assert hidden[0] == (404 if who else 401), (route.path, hidden)


async def test_a_parameter_tells_no_more_than_a_path(world: Guarded) -> None:
    await world.allow("alice", G, "shown", O.READ)
    for path, method in (
        ("/api/timeline", "GET"), ("/api/timeline/lookup", "GET"), ("/api/dirty", "GET"),
        ("/api/tier", "GET"),
        ("/api/groups/shown/reset", "GET"), ("/api/groups/shown/reset", "POST"),
    ):  # fmt: skip
        (route,) = (
            each
            for each in ROUTES
            if each.method == method and each.path == path.replace("shown", "{group}")
        )
        hidden, missing = [
            without_names(
                await world.asked(basic("alice"), path, method, topic=name, **needed(route))
            )
            for name in (HIDDEN, MISSING)
        ]
        assert hidden == missing
        assert hidden[0] == 404, hidden


async def test_no_list_has_a_name_that_its_reader_may_not_know(world: Guarded) -> None:
    await world.allow("alice", C, CLUSTER_NAME, O.ALL)
    for route in ROUTES:
        if route.method != "GET" or (isinstance(route.part, str) and route.part):
            continue
        for who, sees in ((basic("alice"), False), (basic("root"), True), (bearer(READER), True)):
            answer = await world.asked(who, route.path, **needed(route))
            assert answer.status == 200, answer
            text = json.dumps(answer.content)
            named = f'"{HIDDEN}"' in text
            assert named is (sees and '"shown"' in text), route.path
    listed = await world.asked(basic("alice"), "/api/timeline")
    assert [each["topic"] for each in listed.content["partitions"]] == ["shown"]
    assert listed.content["partitions_in_all"] == 1
    assert listed.content["partitions"][0]["lag"]["group"] == "shown"


async def test_a_group_shows_the_topics_that_its_reader_may_know(world: Guarded) -> None:
    await world.allow("alice", G, HIDDEN, O.DESCRIBE)
    group = (await world.asked(basic("alice"), f"/api/groups/{HIDDEN}")).content
    assert (group["partitions"], group["offsets"], group["lag_records"]) == ([], 0, 0)
    group = (await world.asked(basic("root"), f"/api/groups/{HIDDEN}")).content
    assert (len(group["partitions"]), group["offsets"], group["lag_records"]) == (1, 1, 1)


async def test_metrics_name_what_their_reader_may_know(world: Guarded) -> None:
    for path in ("/metrics", "/metrics/kafka"):
        for who, shown, hidden in (
            (bearer(READER), True, True), (basic("root"), True, True),
            (basic("alice"), True, False), (NOBODY, False, False),
        ):  # fmt: skip
            text = await world.scraped(who, path)
            assert ('="shown"' in text, f'="{HIDDEN}"' in text) == (shown, hidden), path
            assert "process_" in text
    assert (await world.asked(basic("alice", "wrong"), "/metrics")).status == 401
    for probe in ("/livez", "/readyz", "/time"):
        await world.scraped(NOBODY, probe)


@pytest.mark.parametrize("path", ["/metrics", "/metrics/kafka", "/api/clock"])
async def test_a_wrong_secret_at_any_path_is_in_the_audit(
    world: Guarded, path: str, told: Callable[[], Lines]
) -> None:
    for wrong in (basic("alice", "wrong"), bearer("w" * 16)):
        assert (await world.asked(wrong, path)).status == 401
    trail = world.broker.services.trail
    assert trail.failures["HTTP"] == 2
    await all_told(trail)
    assert "authentication_failed" in [each["event"] for each in told()]


async def test_settings_and_changes_need_their_rights(world: Guarded) -> None:
    alice = basic("alice")
    assert (await world.asked(alice, "/api/topics/shown")).content["settings"] == {}
    assert (await world.asked(alice, "/api/topics/shown/compaction")).code == "forbidden"
    await world.allow("alice", T, "shown", O.DESCRIBE_CONFIGS)
    assert (await world.asked(alice, "/api/topics/shown")).content["settings"]
    assert (await world.asked(alice, "/api/topics/shown/compaction")).status == 200
    for path in ("/api/config", "/api/clock", "/api/scrub", "/api/starts"):
        answer = await world.asked(alice, path)
        assert (answer.status, answer.code) == (403, "forbidden"), path
        assert "kafka-acls" in answer.message
        answer = await world.asked(NOBODY, path)
        assert (answer.status, answer.code) == (401, "identity"), path
        assert "Basic" in answer.headers["WWW-Authenticate"]
    confirm = "/api/clock/confirm"
    assert (await world.asked(bearer(READER), confirm, "POST")).code == "role"
    assert (await world.asked(bearer(OPERATOR), confirm, "POST")).status == 200
    assert (await world.asked(alice, confirm, "POST")).code == "forbidden"
    await world.allow("alice", C, CLUSTER_NAME, O.ALTER)
    assert (await world.asked(alice, confirm, "POST")).status == 200


async def test_setting_a_group_back_needs_what_a_commit_needs(world: Guarded) -> None:
    alice, path = basic("alice"), "/api/groups/shown/reset"

    async def reset() -> Answered:
        return await world.asked(alice, path, "POST", to="2020-01-01T00:00:00Z")

    assert (await reset()).code == "forbidden"
    await world.allow("alice", G, "shown", O.READ)
    refused = await reset()
    assert (refused.code, "READ topic 'shown'" in refused.message) == ("forbidden", True)
    await world.allow("alice", T, "shown", O.READ)
    assert (await reset()).content["executed"]


async def test_a_redrive_needs_the_letters_the_group_and_the_topics_of_origin(
    world: Guarded,
) -> None:
    """As somebody who reads the letters by hand and writes them where they are from."""
    alice, path = basic("alice"), "/api/share-groups/shared/redrive?letters=dlq.shown"
    rights = ((G, "shared", O.READ), (T, "dlq.shown", O.READ), (T, "shown", O.WRITE))
    for kind, name, operation in (
        *rights, (T, "dlq.shown", O.WRITE), (T, "dlq.shown", O.CREATE), (T, "shown", O.READ),
    ):  # fmt: skip
        await world.allow("ANONYMOUS", kind, name, operation)
    await world.make_topic("dlq.shown", errors_deadletterqueue_group_enable="true")
    joins = ShareGroupHeartbeatRequest(
        group_id="shared", member_id="a", member_epoch=0, subscribed_topic_names=["shown"]
    )
    assert (await world.client.call(joins, 1)).error_code == 0
    own = {"topic": "shown", "partition": 0, "offset": 0, "group": "shared"}
    headers = [(f"__dlq.errors.{name}", str(value).encode()) for name, value in own.items()]
    headers.append(("horolog.dlq.record.time", b"%d" % START))
    data = PartitionProduceData(index=0, records=build_batch([(START, None, b"v", headers)]))
    topics = [TopicProduceData(name="dlq.shown", partition_data=[data])]
    request = ProduceRequest(acks=1, timeout_ms=9000, topic_data=topics)
    answer = await world.client.call(request, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    await world.allow("alice", G, "shared", O.DESCRIBE)
    await world.allow("alice", T, "dlq.shown", O.DESCRIBE)
    for kind, name, operation in rights:
        refused = await world.asked(alice, path, "POST")
        assert (refused.status, refused.code) == (403, "forbidden")
        assert f"may not {operation.name}" in refused.message
        assert name in refused.message
        await world.allow("alice", kind, name, operation)
    assert (await world.asked(alice, path, "POST")).content["sent"] == 1


async def test_who_changed_it_is_told_by_name(world: Guarded, told: Callable[[], Lines]) -> None:
    for who in (basic("root"), bearer(OPERATOR), basic("alice"), NOBODY, basic("root", "no")):
        await world.asked(who, "/api/clock/confirm", "POST")
    await all_told(world.broker.services.trail)
    assert [(each["event"], each["principal"]) for each in told()[-5:]] == [
        ("admin_change", "User:root"),
        ("admin_change", "Token:operate"),
        ("denied", "User:alice"),
        ("admin_change", "User:ANONYMOUS"),
        ("authentication_failed", "User:ANONYMOUS"),
    ]
    assert not any("pencil" in str(each) or OPERATOR in str(each) for each in told())


async def test_a_right_that_is_taken_away_is_gone_with_the_next_request(world: Guarded) -> None:
    assert (await world.asked(basic("alice"), "/api/topics/shown")).status == 200
    book = world.broker.services.authority.book
    world.broker.services.authority.book = book.without(set(book.acls))
    assert (await world.asked(basic("alice"), "/api/topics/shown")).status == 404
    async with world.broker.services.users.changing:
        await world.broker.services.users.store({})
    assert (await world.asked(basic("alice"), "/api/topics/shown")).code == "credentials"
