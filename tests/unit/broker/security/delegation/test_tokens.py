"""Delegation tokens: their times, who changes them, what is left of them after a crash."""

import base64

import pytest
from scramp import ScramClient

from broker.runtime.documents import DecidesDocumentsHere, NotDecided
from broker.security.credentials import Mechanism
from broker.security.delegation import tokens as subject
from broker.security.delegation.token import DelegationToken, TokenKey
from broker.security.delegation.tokens import Tokens, Wish
from broker.security.delegation.tokens_file import FILE_NAME
from broker.security.sasl.exchange import InvalidCredentials
from broker.security.sasl.scram import ScramExchange
from protocol.errors import ErrorCode, KafkaError
from storage.env import Env
from storage.errors import CorruptCheckpoint, DiskError
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock, sim_env
from tests.support.worlds.handler_world import LOG_DIR
from tests.support.worlds.known_tokens import tokens_on
from tests.support.worlds.known_users import users_of

SHA_256, SHA_512 = Mechanism
DAY_MS = 86_400_000
WISH = Wish("alice", "admin", ("bob",), -1)


class Disk:
    """A machine that can die: its clock goes on, its files are what is left."""

    def __init__(self) -> None:
        self.clock = SimClock()
        self.fs = SimFileSystem(clock=self.clock)
        self.starts = 0

    @property
    def env(self) -> Env:
        """Of the next start."""
        self.starts += 1
        return sim_env(self.starts, fs=self.fs, clock=self.clock)


async def test_operators_read_the_name_of_a_token_and_not_its_password() -> None:
    tokens = tokens_on()
    made = await tokens.create(WISH)
    assert tokens.name_of(tokens.hmac_of(made)) == f"{made.token_id} of alice"
    assert tokens.name_of(b"x") == ""


async def code_of(change: object) -> int:
    try:
        await change  # type: ignore[misc]
    except KafkaError as error:
        return error.code
    return 0


async def test_times_of_a_token() -> None:
    disk = Disk()
    tokens, now_ms = tokens_on(disk.env), disk.clock.now_ms()
    made = await tokens.create(WISH)
    assert (made.issued_ms, made.expires_ms) == (now_ms, now_ms + DAY_MS)
    assert made.latest_ms == now_ms + 7 * DAY_MS
    for asked_ms, latest_ms in ((0, 7 * DAY_MS), (5000, 5000), (2**62, 7 * DAY_MS)):
        other = await tokens.create(WISH._replace(lifetime_ms=asked_ms))
        assert other.latest_ms == now_ms + latest_ms
        assert other.expires_ms == now_ms + min(latest_ms, DAY_MS)
    hmac = tokens.hmac_of(made)
    disk.clock.advance(DAY_MS // 2)
    for asked_ms, period_ms in ((-1, DAY_MS), (0, DAY_MS), (1000, 1000), (2**62, DAY_MS)):
        ends_ms = await tokens.renew(hmac, asked_ms, "bob")
        assert ends_ms == disk.clock.now_ms() + period_ms
    assert await tokens.expire(hmac, 2**63 - 1, "alice") == made.latest_ms
    assert await tokens.expire(hmac, 10, "alice") == disk.clock.now_ms() + 10
    disk.clock.advance(11)
    assert await code_of(tokens.renew(hmac, -1, "carol")) == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert await code_of(tokens.expire(hmac, 0, "alice")) == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert await tokens.expire(hmac, -7, "alice") == disk.clock.now_ms()
    assert await code_of(tokens.renew(hmac, -1, "bob")) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize("user", ["admin", "carol", ""])
async def test_only_owner_and_renewers_change_a_token(user: str) -> None:
    tokens = tokens_on()
    hmac = tokens.hmac_of(await tokens.create(WISH))
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert await code_of(tokens.renew(hmac, -1, user)) == mismatch
    assert await code_of(tokens.expire(hmac, 10, user)) == mismatch
    assert await code_of(tokens.expire(hmac, -1, user)) == mismatch
    assert await code_of(tokens.renew(hmac[:-1], -1, "alice")) == 62
    assert await code_of(tokens.renew(b"", -1, "alice")) == 62


def challenged(
    tokens: Tokens, token_id: str, password: str, mechanism: Mechanism
) -> tuple[ScramExchange, ScramClient]:
    """A client of another make, which asks for a token and has its challenge."""
    exchange = ScramExchange(mechanism, users_of({}), tokens, SeededRng())
    client = ScramClient([mechanism.sasl_name], token_id, password)
    first = client.get_client_first() + ",tokenauth=true"
    client.client_first_bare += ",tokenauth=true"
    client.set_server_first(exchange.step(first.encode()).decode())
    return exchange, client


def log_in(tokens: Tokens, token_id: str, password: str, mechanism: Mechanism) -> object:
    """The proof of such a client."""
    exchange, client = challenged(tokens, token_id, password, mechanism)
    client.set_server_final(exchange.step(client.get_client_final().encode()).decode())
    return exchange.proven


def password_of(tokens: Tokens, token: DelegationToken) -> str:
    return base64.b64encode(tokens.hmac_of(token)).decode()


@pytest.mark.parametrize("mechanism", list(Mechanism))
async def test_a_token_logs_in_as_its_owner_until_it_ends(mechanism: Mechanism) -> None:
    disk = Disk()
    tokens = tokens_on(disk.env)
    made = await tokens.create(WISH)
    password = password_of(tokens, made)
    proof = log_in(tokens, made.token_id, password, mechanism)
    assert proof == ("alice", TokenKey(made.token_id), made.expires_ms, True)
    with pytest.raises(InvalidCredentials):
        log_in(tokens, made.token_id, "guess", mechanism)
    with pytest.raises(InvalidCredentials):
        log_in(tokens, "AAAAAAAAAAAAAAAAAAAAAA", password, mechanism)
    disk.clock.advance(DAY_MS + 1)
    with pytest.raises(InvalidCredentials):
        log_in(tokens, made.token_id, password, mechanism)


async def test_a_token_is_no_user_and_a_user_no_token() -> None:
    tokens = tokens_on()
    made = await tokens.create(WISH)
    exchange = ScramExchange(SHA_256, users_of({}), tokens, SeededRng())
    client = ScramClient(["SCRAM-SHA-256"], made.token_id, password_of(tokens, made))
    client.set_server_first(exchange.step(client.get_client_first().encode()).decode())
    with pytest.raises(InvalidCredentials):
        exchange.step(client.get_client_final().encode())


async def test_a_token_that_is_not_there_looks_like_one() -> None:
    tokens = tokens_on()
    made = await tokens.create(WISH)
    known = tokens.credential_or_decoy(made.token_id, SHA_256)
    one, again = (tokens.credential_or_decoy("gone", SHA_256) for _ in range(2))
    assert one == again
    assert one.salt != known.salt
    assert (one.iterations, len(one.stored_key)) == (known.iterations, len(known.stored_key))
    await tokens.expire(tokens.hmac_of(made), -1, "alice")
    assert tokens.credential_or_decoy(made.token_id, SHA_256).salt == known.salt


async def test_tokens_of_another_secret_let_nobody_in() -> None:
    disk = Disk()
    before = tokens_on(disk.env)
    made = await before.create(WISH)
    for after in (tokens_on(disk.env, "another"), tokens_on(disk.env, "")):
        assert after.all() == []
        assert await code_of(after.renew(before.hmac_of(made), -1, "alice")) == 62
        with pytest.raises(InvalidCredentials):
            log_in(after, made.token_id, password_of(before, made), SHA_256)
    await tokens_on(disk.env, "another").create(WISH)
    assert tokens_on(disk.env).all() == [made]


async def test_the_sweep_takes_what_has_ended_and_its_connections() -> None:
    disk = Disk()
    tokens = tokens_on(disk.env)
    gone: list[TokenKey] = []
    tokens.on_removed = gone.append
    short = await tokens.create(WISH._replace(lifetime_ms=1000))
    kept = await tokens.create(WISH)
    await tokens.sweep()
    assert gone == []
    disk.clock.advance(1001)
    await tokens.sweep()
    assert gone == [TokenKey(short.token_id)]
    assert tokens.all() == tokens_on(disk.env).all() == [kept]


async def test_who_ends_a_token_earlier_ends_its_sessions() -> None:
    disk = Disk()
    tokens = tokens_on(disk.env)
    ends: list[tuple[TokenKey, int]] = []
    tokens.on_ending = lambda key, at_ms: ends.append((key, at_ms))
    made = await tokens.create(WISH)
    hmac = tokens.hmac_of(made)
    disk.clock.advance(10)
    await tokens.renew(hmac, -1, "alice")
    assert ends == []
    at_ms = await tokens.expire(hmac, 500, "alice")
    assert ends == [(TokenKey(made.token_id), at_ms)]


async def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_OF_AN_OWNER", 2)
    monkeypatch.setattr(subject, "MAX_TOKENS", 3)
    tokens = tokens_on()
    wishes = [WISH, WISH, WISH, WISH._replace(owner="b"), WISH._replace(owner="c")]
    codes = [await code_of(tokens.create(each)) for each in wishes]
    assert codes == [0, 0, ErrorCode.POLICY_VIOLATION, 0, ErrorCode.POLICY_VIOLATION]


async def test_what_was_answered_outlives_kills_and_power_cuts() -> None:
    """Every change, then the end of the machine in many ways."""
    for seed in range(20):
        disk = Disk()
        for step in range(4):
            tokens = tokens_on(disk.env)
            made = await tokens.create(WISH)
            if step % 2:
                await tokens.renew(tokens.hmac_of(made), 1000, "bob")
            else:
                await tokens.expire(tokens.hmac_of(tokens.all()[0]), -1, "alice")
            expected = tokens.all()
            disk.fs = disk.fs.after_crash(seed) if seed else disk.fs.after_kill()
            assert tokens_on(disk.env).all() == expected


async def test_a_disk_that_refuses_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    tokens = tokens_on(disk.env)
    made = await tokens.create(WISH)

    def refuse(path: str, data: bytes) -> None:
        raise DiskError(path, "write", 28, "no space left on device")

    monkeypatch.setattr(disk.fs, "write_atomically", refuse)
    hmac = tokens.hmac_of(made)
    for change in (
        tokens.create(WISH),
        tokens.renew(hmac, 5, "alice"),
        tokens.expire(hmac, -1, "alice"),
    ):
        with pytest.raises(DiskError):
            await change
    assert tokens.all() == [made]
    assert disk.fs.exists(f"{LOG_DIR}/{FILE_NAME}")


class Decides(DecidesDocumentsHere):
    """An authority that takes what it gets, or says that another was first."""

    def __init__(self) -> None:
        self.content = b""
        self.is_late = False

    async def decided(self, name: str, content: bytes) -> None:
        assert name == "tokens"
        if self.is_late:
            raise NotDecided("changed meanwhile")
        self.content = content


async def test_tokens_of_a_fleet_count_where_they_are_followed() -> None:
    here, there, authority = tokens_on(), tokens_on(), Decides()
    here.authority = authority
    ended, removed = list[tuple[TokenKey, int]](), list[TokenKey]()
    there.on_ending = lambda key, at_ms: ended.append((key, at_ms))
    there.on_removed = removed.append
    made, other = await here.create(WISH), await here.create(WISH)
    await there.follow(authority.content)
    assert {each.token_id for each in there.all()} == {made.token_id, other.token_id}
    assert there.hmac_of(made) == here.hmac_of(made)
    ends_ms = await here.expire(here.hmac_of(made), 5000, "alice")
    await here.expire(here.hmac_of(other), -1, "alice")
    await there.follow(authority.content)
    assert ended == [(TokenKey(made.token_id), ends_ms)]
    assert removed == [TokenKey(other.token_id)]
    with pytest.raises(CorruptCheckpoint):
        await there.follow(authority.content[:-9])
    assert [each.token_id for each in there.all()] == [made.token_id]


async def test_a_log_in_goes_on_while_a_fleet_makes_another_token() -> None:
    here, there, authority = tokens_on(), tokens_on(), Decides()
    here.authority = authority
    made = await here.create(WISH)
    await there.follow(authority.content)
    exchange, client = challenged(there, made.token_id, password_of(there, made), SHA_256)
    await here.create(WISH)
    await there.follow(authority.content)
    exchange.step(client.get_client_final().encode())
    assert exchange.proven is not None
    assert exchange.proven.user == "alice"


async def test_of_a_change_that_was_not_decided_nothing_is_left() -> None:
    disk, authority = Disk(), Decides()
    tokens = tokens_on(disk.env)
    tokens.authority = authority
    made = await tokens.create(WISH)
    authority.is_late = True
    with pytest.raises(NotDecided):
        await tokens.create(WISH)
    with pytest.raises(NotDecided):
        await tokens.renew(tokens.hmac_of(made), 5000, "alice")
    disk.clock.advance(8 * DAY_MS)
    await tokens.sweep()  # another node was first
    assert tokens.all() == [made] == tokens_on(disk.env).all()
