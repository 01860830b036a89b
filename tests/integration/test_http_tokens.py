"""The admin API over TLS with tokens of a provider: each user sees what its entries allow."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from broker.daemon.app import Broker
from broker.security.acl import Acl
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType
from tests.integration.test_https import TOKEN, ask, settings_of
from tests.support.clients.issuer import AUDIENCE, NAME, Issuer, key_of, raw_token
from tests.support.worlds.app import running_broker

ISSUER = Issuer(key_of())


class World(NamedTuple):
    broker: Broker
    keys: Path

    async def topics(self, token: str) -> tuple[int, list[str]]:
        """Status, and the topics that the holder of a token sees."""
        status, found = await ask(self.broker, "/api/topics", Authorization=f"Bearer {token}")
        return status, [each["topic"] for each in found.get("topics", ())]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps(ISSUER.published))
    settings = settings_of(
        tmp_path,
        **{
            "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "listener.name.http.sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.issuer": NAME,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "connection.failed.authentication.delay.ms": "0",
        },
    )
    async with running_broker(tmp_path / "data", settings) as broker:
        await broker.services.rules.auto_create(["seen", "unseen"], lambda _: None)
        acl = Acl(
            ResourceType.TOPIC, PatternType.LITERAL, "seen", "User:alice", "*",
            AclOperation.DESCRIBE, AclPermission.ALLOW,
        )  # fmt: skip
        await broker.services.authority.add([acl])
        yield World(broker, keys)


async def test_a_user_with_a_token_sees_its_own(world: World) -> None:
    assert await world.topics(ISSUER.token("alice")) == (200, ["seen"])
    assert await world.topics(ISSUER.token("bob")) == (200, [])
    assert (await world.topics(TOKEN))[0] == 200


@pytest.mark.parametrize(
    "token",
    [
        ISSUER.token("alice", -100),
        ISSUER.token("alice", aud="others"),
        ISSUER.token("alice", iss="https://evil.test"),
        ISSUER.token("alice", key=key_of(kid="one")),
        raw_token({"alg": "none"}, ISSUER.claims("alice")),
    ],
    ids=["expired", "others", "issuer", "forged", "unsigned"],
)
async def test_a_bad_token_lets_nobody_in(world: World, token: str) -> None:
    assert (await world.topics(token))[0] == 401


async def test_new_keys_count_when_a_token_needs_them(world: World) -> None:
    """Without a restart; the token that came first waits for them."""
    other = Issuer(key_of(kid="two"))
    world.keys.write_text(json.dumps(other.published))
    begun = time.monotonic()
    assert await world.topics(other.token("alice")) == (200, ["seen"])
    assert time.monotonic() - begun < 10
