"""The four APIs of delegation tokens: Kafka 4.3's codes, in its order, and what they show."""

from typing import Any

import pytest

from broker.runtime.principals import ANONYMOUS, Principal
from broker.security.acl import Acl
from broker.security.acl_book import AclBook
from broker.security.authority import AclRights
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType
from protocol.apis import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from tests.support.worlds.handler_world import World
from tests.support.worlds.known_tokens import SECRET

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PROTOCOLS = "SASL:SASL_PLAINTEXT,SSL:SSL,PLAINTEXT:PLAINTEXT"
NOT_ALLOWED, DENIED, NO_KIND, OFF, UNKNOWN, FOREIGN = 64, 65, 67, 61, 62, 63


class TokenWorld(World):
    """Somebody on a SASL listener."""

    listener_name = "SASL"

    def comes(self, user: str, *acls: Acl) -> None:
        """From now on this user asks, with these entries in force."""
        self.principal = Principal("User", user)
        if acls:
            self.broker.authority.book = AclBook(acls)
        self.rights = AclRights(self.broker.authority, self.principal, "10.0.0.9")

    async def create(self, version: int = 3, **asked: Any) -> Any:
        asked = {"renewers": [], "max_lifetime_ms": -1, **asked}
        request = create_delegation_token.CreateDelegationTokenRequest(**asked)
        return await self.call(request, version)

    async def create_for(self, owner: str, kind: str | None = "User", **asked: Any) -> Any:
        return await self.create(owner_principal_type=kind, owner_principal_name=owner, **asked)

    async def renew(self, hmac: bytes, version: int = 2) -> int:
        request = renew_delegation_token.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=-1)
        return _code_with_its_time(await self.call(request, version))

    async def expire(self, hmac: bytes, version: int = 2) -> int:
        kind = expire_delegation_token.ExpireDelegationTokenRequest
        request = kind(hmac=hmac, expiry_time_period_ms=-1)
        return _code_with_its_time(await self.call(request, version))

    async def described(self, *owners: str, version: int = 3) -> Any:
        """The answer for these owners; for all without any."""
        kind = describe_delegation_token.DescribeDelegationTokenOwner
        named = [kind(principal_type="User", principal_name=each) for each in owners]
        request = describe_delegation_token.DescribeDelegationTokenRequest(owners=named or None)
        return await self.call(request, version)

    async def seen(self, *owners: str) -> list[str]:
        return [each.principal_name for each in (await self.described(*owners)).tokens]


def _code_with_its_time(answer: Any) -> int:
    """The error code. As in Kafka 4.3 only a client that may not ask hears of the time -1."""
    code, ends_ms = int(answer.error_code), answer.expiry_timestamp_ms
    assert ends_ms > 0 if code == 0 else ends_ms == (-1 if code == NOT_ALLOWED else 0)
    return code


def renewer(name: str, kind: str = "User") -> Any:
    return create_delegation_token.CreatableRenewers(principal_type=kind, principal_name=name)


def allowed(kind: ResourceType, name: str, operation: AclOperation, user: str) -> Acl:
    literal, allow = PatternType.LITERAL, AclPermission.ALLOW
    return Acl(kind, literal, name, f"User:{user}", "*", operation, allow)


@pytest.fixture
async def world() -> TokenWorld:
    world = TokenWorld(
        authorizer_class_name=STANDARD,
        delegation_token_secret_key=SECRET,
        listener_security_protocol_map=PROTOCOLS,
    )
    world.comes("alice")
    return world


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_token_is_made_and_shown(world: TokenWorld, version: int) -> None:
    made = await world.create(version, renewers=[renewer("bob"), renewer("bob")])
    assert (made.error_code, made.principal_type, made.principal_name) == (0, "User", "alice")
    assert len(made.hmac) == 64
    (token,) = (await world.described(version=version)).tokens
    assert (token.token_id, bytes(token.hmac)) == (made.token_id, bytes(made.hmac))
    assert token.expiry_timestamp == made.expiry_timestamp_ms
    assert token.max_timestamp == made.max_timestamp_ms
    assert [each.principal_name for each in token.renewers] == ["bob"]
    if version == 3:
        assert token.token_requester_principal_name == "alice"


async def test_tokens_for_others_take_a_right(world: TokenWorld) -> None:
    assert (await world.create_for("alice")).error_code == 0
    assert (await world.create_for("", None)).error_code == 0
    denied = await world.create_for("bob", renewers=[renewer("x", "Group")])
    assert (denied.error_code, denied.principal_name) == (DENIED, "bob")
    assert denied.token_requester_principal_name == "alice"
    right = allowed(ResourceType.USER, "User:bob", AclOperation.CREATE_TOKENS, "alice")
    world.comes("alice", right)
    assert (await world.create_for("bob")).error_code == 0
    assert (await world.create_for("carol")).error_code == DENIED
    wrong = await world.create_for("bob", renewers=[renewer("x", "Group")])
    assert wrong.error_code == NO_KIND


async def test_owners_that_are_no_users(world: TokenWorld) -> None:
    world.rights = None
    for kind in ("Group", "", None):
        assert (await world.create_for("bob", kind)).error_code == NO_KIND


async def test_what_is_too_long_is_refused(world: TokenWorld) -> None:
    many = [renewer(f"r{number}") for number in range(101)]
    assert (await world.create(renewers=many)).error_code == 42
    assert (await world.create(renewers=[renewer("x" * 1025)])).error_code == 42
    assert (await world.described()).tokens == []


async def refusals(world: TokenWorld) -> list[int]:
    return [
        (await world.create_for("bob")).error_code,
        await world.renew(b"x"),
        await world.expire(b"x"),
        (await world.described()).error_code,
    ]


async def test_who_may_not_ask_at_all(world: TokenWorld) -> None:
    world.by_token = True
    assert await refusals(world) == [NOT_ALLOWED] * 4
    world.by_token, world.listener_name = False, "PLAINTEXT"
    assert await refusals(world) == [NOT_ALLOWED] * 4
    world.listener_name = "SSL"
    assert await refusals(world) == [DENIED, UNKNOWN, UNKNOWN, 0]
    world.principal = ANONYMOUS
    assert await refusals(world) == [NOT_ALLOWED] * 4


async def test_without_a_secret_there_are_no_tokens() -> None:
    world = TokenWorld(listener_security_protocol_map=PROTOCOLS)
    world.principal = Principal("User", "alice")
    assert (await world.create()).error_code == OFF
    assert (await world.create(renewers=[renewer("x", "Group")])).error_code == NO_KIND
    assert await refusals(world) == [OFF] * 4
    world.listener_name = "PLAINTEXT"
    assert await refusals(world) == [NOT_ALLOWED] * 4


async def test_who_may_change_a_token(world: TokenWorld) -> None:
    hmac = bytes((await world.create(renewers=[renewer("bob")])).hmac)
    for user, code in (("carol", FOREIGN), ("bob", 0), ("alice", 0)):
        world.comes(user)
        for version in (1, 2):
            assert await world.renew(hmac, version) == code
    world.comes("carol")
    assert await world.expire(hmac) == FOREIGN
    world.comes("bob")
    assert await world.expire(hmac, 1) == 0
    assert await world.expire(hmac) == UNKNOWN


async def test_who_sees_which_tokens(world: TokenWorld) -> None:
    mine = await world.create(renewers=[renewer("bob")])
    world.comes("carol")
    await world.create()
    assert await world.seen() == ["carol"]
    assert await world.seen("alice") == []
    world.comes("bob")
    assert await world.seen() == ["alice"]
    assert await world.seen("bob") == ["alice"]
    assert await world.seen("carol", "alice") == ["alice"]
    for right in (
        allowed(ResourceType.USER, "User:alice", AclOperation.DESCRIBE_TOKENS, "dave"),
        allowed(ResourceType.DELEGATION_TOKEN, mine.token_id, AclOperation.DESCRIBE, "dave"),
    ):
        world.comes("dave", right)
        assert await world.seen() == ["alice"]
        assert await world.seen("carol") == []


async def test_an_empty_list_of_owners_asks_for_none(world: TokenWorld) -> None:
    await world.create()
    request = describe_delegation_token.DescribeDelegationTokenRequest(owners=[])
    assert (await world.call(request, 3)).tokens == []


async def test_tokens_outlive_the_broker(world: TokenWorld) -> None:
    made = await world.create()
    again = TokenWorld(world.fs.after_kill(), delegation_token_secret_key=SECRET)
    assert [each.token_id for each in again.broker.tokens.all()] == [made.token_id]
