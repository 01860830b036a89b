"""Who asks the HTTP port, and what it may: tokens with roles, users with ACLs, and strangers."""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.http.port.caller import Caller, Needs, Open, Role, check_allowed
from broker.http.port.identity import Identities, KnownUsers
from broker.http.port.messages import ApiError, Request
from broker.http.port.route import HttpRoute, NoServices, check_routes
from broker.http.port.shown_metrics import shown
from broker.http.port.token import HttpTokens
from broker.http.routes import ROUTES
from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred
from broker.runtime.principals import Principal
from broker.runtime.rights import RIGHTS
from broker.security.credentials import CredentialKey, Mechanism
from config.errors import ConfigError
from protocol.acls import AclOperation, ResourceType, bits_of
from storage.posix import PosixFileSystem

READER, OPERATOR, ADMIN = "r" * 16, "o" * 16, "0123456789abcdef"
READ = Request("GET", "/api/topics", "", "127.0.0.1:9404", address="127.0.0.1")
CHANGE = READ._replace(method="POST", path="/api/clock/confirm")


def tokens(text: str = f"read:{READER}\noperate:{OPERATOR}\n\n{ADMIN}\n") -> HttpTokens:
    held = HttpTokens(OneFile(text), "tokens")
    held.value = held.read()
    return held


class OneFile(PosixFileSystem):
    """A file system with one file."""

    def __init__(self, text: str, *, is_open: bool = False) -> None:
        self.text, self.is_open = text, is_open

    def read_text(self, path: str) -> str:
        return self.text

    def is_open_to_all(self, path: str) -> bool:
        return self.is_open


NO_TOKENS = HttpTokens(OneFile(""), "")


@dataclass
class Given:
    """The rights to these names, of any type."""

    names: set[str]
    operations: set[AclOperation] = field(default_factory=lambda: {AclOperation.DESCRIBE})
    granted: dict[int, set[str]] = field(default_factory=dict)

    def may(self, mark: int, name: str) -> bool:
        return name in self.names and RIGHTS[mark][0] in self.operations

    def bits(self, kind: ResourceType, name: str) -> int:
        return bits_of(tuple(self.operations)) if name in self.names else 0

    def may_on_any(self, mark: int) -> bool:
        return bool(self.names) and RIGHTS[mark][0] in self.operations


class OnePassword:
    """`alice` has the password `pencil`."""

    busy = False

    def check(self, user: str, password: bytes, host: str) -> "Deferred[CredentialKey | None]":
        if self.busy:
            raise CloseConnection("authentication_busy")
        answer: Deferred[CredentialKey | None] = Deferred()
        is_right = (user, password) == ("alice", b"pencil")
        answer.resolve(CredentialKey(user, Mechanism.SCRAM_SHA_256) if is_right else None)
        return answer


class Delays:
    def __init__(self) -> None:
        self.hosts: list[str] = []

    def failed(self, host: str) -> float:
        self.hosts.append(host)
        return 0.0


def refused_certificate(_: bytes) -> str:
    raise ValueError("no rule")


def world(host: str = "127.0.0.1", **fields: object) -> Identities:
    """A listener with an authorizer: `alice` sees `a`, strangers `public`."""

    def rights_of(principal: Principal, _: str) -> Given:
        return Given({"a"} if principal.name == "alice" else {"public"})

    parts = {
        "rights_of": rights_of, "passwords": OnePassword(),
        "user_of_certificate": lambda der: der.decode(),
    }  # fmt: skip
    delays: Any = fields.pop("delays", Delays())
    users = KnownUsers(**{**parts, **fields})  # type: ignore[arg-type]
    return Identities(host, tokens(), users, delays, is_test=False)


def plain(host: str = "127.0.0.1", held: HttpTokens | None = None, **more: Any) -> Identities:
    """A listener without an authorizer."""
    delays = more.get("delays", Delays())
    return Identities(host, held or tokens(), None, delays, is_test=more.get("is_test", False))


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


async def refusal(listener: Identities, request: Request) -> str | None:
    try:
        await listener.of_api(request)
    except ApiError as error:
        return error.code
    return None


# --- without an authorizer ---


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
async def test_everybody_on_the_machine_may_read(host: str) -> None:
    assert await refusal(plain(host, NO_TOKENS), READ) is None


async def test_a_change_needs_the_token_on_loopback_too() -> None:
    assert await refusal(plain(), CHANGE) == "token"
    assert await refusal(plain(held=NO_TOKENS), CHANGE) == "no_token_set"
    assert await refusal(plain(), CHANGE._replace(authorization=f"Bearer {ADMIN}")) is None


async def test_elsewhere_reading_needs_it_as_well() -> None:
    everywhere = plain("0.0.0.0")
    assert await refusal(everywhere, READ) == "token"
    assert await refusal(plain("0.0.0.0", NO_TOKENS), READ) == "no_token_set"
    assert await refusal(everywhere, READ._replace(authorization=f"Bearer {READER}")) is None
    assert await refusal(everywhere, READ._replace(method="HEAD")) == "token"
    assert await refusal(everywhere, READ._replace(authorization=basic("alice", "pencil")))


async def test_a_held_clock_opens_changes_on_loopback_only() -> None:
    assert await refusal(plain(held=NO_TOKENS, is_test=True), CHANGE) is None
    assert await refusal(plain("0.0.0.0", is_test=True), CHANGE) == "token"


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", f"Basic {ADMIN}", f"Bearer {ADMIN}x", f"Bearer {ADMIN[:-1]}",
     ADMIN, "Bearer \u00e9", "Bearer \udcff", f"Bearer {ADMIN} {ADMIN}", f"Bearer admin:{ADMIN}"],
)  # fmt: skip
async def test_what_is_not_the_token_is_refused_and_says_how(authorization: str) -> None:
    with pytest.raises(ApiError) as refused:
        await plain().of_api(CHANGE._replace(authorization=authorization))
    assert refused.value.status == 401
    assert refused.value.headers["WWW-Authenticate"].startswith("Bearer")
    assert ADMIN not in refused.value.message


@pytest.mark.parametrize("made", [plain, world])
async def test_a_wrong_token_is_refused_late_and_the_lack_of_one_at_once(
    made: Callable[..., Identities],
) -> None:
    delays = Delays()
    listener = made("0.0.0.0", delays=delays)
    for given, failures in (("", 0), (f"Bearer {ADMIN}", 0), (f"Bearer {ADMIN}x", 1)):
        await refusal(listener, READ._replace(authorization=given))
        assert len(delays.hosts) == failures, given


@pytest.mark.parametrize(
    ("token", "role"), [(READER, Role.READ), (OPERATOR, Role.OPERATE), (ADMIN, Role.ADMIN)]
)
async def test_a_token_has_a_role(token: str, role: Role) -> None:
    for listener in (plain(), world()):
        caller = await listener.of_api(CHANGE._replace(authorization=f"Bearer {token}"))
        assert str(caller.principal) == f"Token:{role.name.lower()}"
        for least in Role:
            needs = Needs(AclOperation.ALTER, ResourceType.CLUSTER, role=least)
            if least <= role:
                check_allowed(caller, needs, "")
            else:
                with pytest.raises(ApiError, match="role"):
                    check_allowed(caller, needs, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no token"),
        ("\n \n", "no token"),
        ("short", "line 1"),
        (f"read:{READER}\nadmin:x", "line 2"),
        (f"oper:{READER}", "read, operate, admin"),
        (f"read:{READER}\nadmin:{READER}", "twice"),
        (f"read:{READER} x", "line 1"),
        ("\n".join(f"{number:016}" for number in range(101)), "100"),
    ],
)
def test_a_file_of_tokens_that_is_wrong_is_refused_without_quoting_it(
    text: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        tokens(text)
    assert READER not in str(refused.value)


def test_a_file_of_tokens_that_everybody_may_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="chmod 600"):
        HttpTokens(OneFile(ADMIN, is_open=True), "tokens").read()
    assert ADMIN not in repr(tokens().value)


# --- with one ---


async def test_a_user_with_the_right_password_has_its_rights() -> None:
    caller = await world().of_api(READ._replace(authorization=basic("alice", "pencil")))
    assert (str(caller.principal), caller.is_known) == ("User:alice", True)
    assert (caller.sees_topic("a"), caller.sees_topic("b")) == (True, False)


@pytest.mark.parametrize(
    "authorization",
    [
        basic("alice", "pen"),
        basic("bob", "pencil"),
        "Basic",
        "Basic %%",
        "Basic /w==",
        "Basic YQ==",
    ],
)
async def test_a_wrong_password_is_told_late_and_in_one_way(authorization: str) -> None:
    delays = Delays()
    with pytest.raises(ApiError, match="Invalid username or password") as refused:
        await world(delays=delays).of_api(READ._replace(authorization=authorization))
    assert refused.value.status == 401
    assert "Basic" in refused.value.headers["WWW-Authenticate"]
    assert delays.hosts == ["127.0.0.1"]


async def test_passwords_come_by_tls_or_from_the_machine_itself() -> None:
    asked = READ._replace(authorization=basic("alice", "pencil"), address="10.0.0.7")
    everywhere = world("0.0.0.0")
    assert await refusal(everywhere, asked) == "password_in_the_clear"
    assert await refusal(everywhere, asked._replace(is_tls=True)) is None
    with pytest.raises(ApiError) as refused:
        await everywhere.of_api(READ._replace(address="10.0.0.7"))
    assert "Basic" not in refused.value.headers["WWW-Authenticate"]


async def test_too_many_passwords_at_one_time_are_told_to_come_again() -> None:
    crowded = OnePassword()
    crowded.busy = True
    asked = READ._replace(authorization=basic("alice", "pencil"))
    with pytest.raises(ApiError) as refused:
        await world(passwords=crowded).of_api(asked)
    assert (refused.value.status, refused.value.headers["Retry-After"]) == (503, "1")


async def test_a_certificate_names_its_user_unless_the_request_names_another() -> None:
    asked = READ._replace(is_tls=True, certificate=b"alice")
    assert str((await world().of_api(asked)).principal) == "User:alice"
    with_token = asked._replace(authorization=f"Bearer {READER}")
    assert str((await world().of_api(with_token)).principal) == "Token:read"
    refuses = world(user_of_certificate=refused_certificate)
    assert await refusal(refuses, asked) == "certificate"


async def test_a_stranger_is_anonymous_on_loopback_and_nobody_elsewhere() -> None:
    caller = await world().of_api(READ)
    assert (caller.sees_topic("public"), caller.is_known) == (True, False)
    assert await refusal(world("0.0.0.0"), READ) == "identity"
    nobody = await world("0.0.0.0").of_reader(READ)
    assert not nobody.sees_topic("public")
    assert await refusal(world(), READ._replace(authorization="Digest x")) == "credentials"


TOPIC = Needs(AclOperation.DESCRIBE, ResourceType.TOPIC, "topic")
TOPICS = Needs(AclOperation.DESCRIBE, ResourceType.TOPIC)
CLUSTER = Needs(AclOperation.DESCRIBE, ResourceType.CLUSTER)
CONFIGS = Needs(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "topic")


@pytest.mark.parametrize(
    ("needs", "named", "names", "of_user", "of_stranger"),
    [
        (TOPIC, "a", {"a"}, None, None),
        (TOPIC, "a", set(), None, 401),  # for a user it is not found
        (TOPICS, "", {"a"}, None, None),
        (TOPICS, "", set(), None, 401),  # a user gets an empty list
        (CLUSTER, "", {"kafka-cluster"}, None, None),
        (CLUSTER, "", {"a"}, 403, 401),
        (CONFIGS, "a", {"a"}, 403, 401),
        (CONFIGS, "a", set(), None, 401),
        (Open("all may"), "", set(), None, None),
    ],
)
def test_what_a_missing_right_does(
    needs: Needs | Open, named: str, names: set[str], of_user: int | None, of_stranger: int | None
) -> None:
    for is_known, status in ((True, of_user), (False, of_stranger)):
        caller = Caller(rights=Given(names), is_known=is_known)
        if status is None:
            check_allowed(caller, needs, named)
            continue
        with pytest.raises(ApiError) as refused:
            check_allowed(caller, needs, named)
        assert refused.value.status == status


def test_every_path_says_what_right_it_needs() -> None:
    check_routes(ROUTES)
    open_ones = [each.path for each in ROUTES if isinstance(each.needs, Open)]
    assert open_ones == ["/api/openapi.json"]
    for each in ROUTES:
        assert isinstance(each.needs, Open) or each.method == "GET" or each.needs.role > Role.READ


def test_a_path_that_does_not_say_it_is_not_served() -> None:
    for needs in (None, Needs(AclOperation.READ, ResourceType.TOPIC, "topic")):
        with pytest.raises(LookupError, match="/api/x"):
            check_routes([HttpRoute(NoServices, "GET", "/api/x", "", needs)])  # type: ignore[arg-type]


def test_a_scrape_shows_no_name_that_its_reader_may_not_know() -> None:
    scrape = (
        b'# HELP a topic="no"\nhorolog_up 1\nbytes{topic="a",x="1"} 2\nbytes{topic="no"} 3\n'
        b'lag{group="no",topic="a"} 4\nlag{consumergroup="a",topic="a"} 5\n'
        b'lag{group="q\\"\\\\\\n,topic=\\"no\\"",topic="a"} 6\n'
    )
    seen = shown(scrape, Caller(rights=Given({"a", 'q"\\\n,topic="no"'}))).decode()
    assert [line[-1] for line in seen.split("\n")[1:-1]] == ["1", "2", "5", "6"]
