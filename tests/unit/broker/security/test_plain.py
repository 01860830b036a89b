"""PLAIN: Kafka's texts, one cost for all, and delays of failures."""

import asyncio
from typing import Any, cast

import pytest

from broker.runtime.connection_limits import CloseConnection
from broker.runtime.lanes import DiskLane
from broker.security.credentials import CredentialKey, Mechanism
from broker.security.sasl.exchange import AuthenticationFailed, Proof
from broker.security.sasl.failures import FailureDelays
from broker.security.sasl.plain import MOST_OF_AN_ADDRESS, MOST_WAITING, Passwords, PlainExchange
from broker.security.users import Users
from broker.security.users_file import UserTable, render
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.worlds.handler_world import InlineLanes
from tests.support.worlds.known_users import made, users_of

SHA_256, SHA_512 = Mechanism
OTHER_ID = "Authentication failed: Client requested an authorization id"
ALICE = CredentialKey("alice", SHA_256)
HOST = "192.0.2.1"


class World:
    def __init__(self) -> None:
        self.users: Users = users_of({ALICE: made(SHA_256)})
        self.lane = InlineLanes()
        self.clock = SimClock()
        self.compared = 0
        run = self.lane.run

        def counted(work: Any, *args: object) -> Any:
            self.compared += 1
            return run(work, *args)

        self.lane.run = counted  # type: ignore[method-assign]
        lane = cast("DiskLane", self.lane)
        self.passwords = Passwords(self.users, lane, SeededRng(), self.clock.monotonic)

    async def ask(self, token: bytes) -> tuple[Proof | None, str]:
        """Who was let in, or the text of the refusal."""
        exchange = PlainExchange(self.passwords, HOST)
        heard: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        try:
            exchange.step(token).listen(lambda value, error: heard.set_result(str(error or "")))
        except AuthenticationFailed as error:
            return None, str(error)
        return exchange.proven if not (text := await heard) else None, text


@pytest.mark.parametrize("token", [b"\0alice\0pencil", b"alice\0alice\0pencil"])
async def test_the_right_password(token: bytes) -> None:
    assert await World().ask(token) == (Proof("alice", ALICE), "")


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0pencil", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0pencil",
            f"{OTHER_ID} that is different from username",
        ),
        (b"\0\0pencil", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"alice\0pencil", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0a\0b\0c", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\xff\xfe\0pencil", "Authentication failed: Invalid username or password"),
    ],
)
async def test_wrong_tokens(token: bytes, text: str) -> None:
    assert await World().ask(token) == (None, text)


async def test_a_right_password_is_remembered_and_a_wrong_one_is_not() -> None:
    world = World()
    for _ in range(3):
        assert (await world.ask(b"\0alice\0pencil"))[0] == Proof("alice", ALICE)
    assert world.compared == 1
    for _ in range(3):
        assert (await world.ask(b"\0alice\0wrong"))[0] is None
        assert (await world.ask(b"\0nobody\0pencil"))[0] is None
    assert world.compared == 7
    world.clock.advance(61_000)
    await world.ask(b"\0alice\0pencil")
    assert world.compared == 8


async def test_another_password_ends_what_was_remembered() -> None:
    world = World()
    await world.ask(b"\0alice\0pencil")
    await world.users.store({ALICE: made(SHA_256, "new")})
    assert (await world.ask(b"\0alice\0pencil"))[0] is None
    assert (await world.ask(b"\0alice\0new"))[0] == Proof("alice", ALICE)
    await world.users.store({})
    assert (await world.ask(b"\0alice\0new"))[0] is None


async def test_a_password_that_changes_while_it_is_compared_lets_nobody_in() -> None:
    world = World()
    world.lane.held = True
    exchange = PlainExchange(world.passwords, HOST)
    heard: list[Any] = []
    exchange.step(b"\0alice\0pencil").listen(lambda *each: heard.append(each))
    await world.users.store({})
    world.lane.release()
    await asyncio.sleep(0)
    assert isinstance(heard[0][1], AuthenticationFailed)
    assert exchange.proven is None


async def test_users_of_a_fleet_that_are_read_again_keep_who_is_compared_or_remembered() -> None:
    world = World()
    world.lane.held = True
    exchange = PlainExchange(world.passwords, HOST)
    exchange.step(b"\0alice\0pencil")
    compare = world.lane.waiting.pop()
    world.lane.held = False
    again = render(UserTable(bytes(32), {ALICE: made(SHA_256)}))
    await world.users.follow(again)
    compare()
    await asyncio.sleep(0)
    assert exchange.proven == Proof("alice", ALICE)
    await world.users.follow(again)
    compared = world.compared
    assert (await world.ask(b"\0alice\0pencil"))[0] == Proof("alice", ALICE)
    assert world.compared == compared


async def test_so_many_wait_and_no_more() -> None:
    world = World()
    world.lane.held = True
    addresses = [f"192.0.2.{number}" for number in range(MOST_WAITING // MOST_OF_AN_ADDRESS)]
    for address in addresses:
        for _ in range(MOST_OF_AN_ADDRESS):
            PlainExchange(world.passwords, address).step(b"\0alice\0pencil")
    with pytest.raises(CloseConnection, match="too many"):
        PlainExchange(world.passwords, HOST[:-1] + "9").step(b"\0alice\0pencil")
    world.lane.release()
    await asyncio.sleep(0)
    PlainExchange(world.passwords, addresses[0]).step(b"\0alice\0wrong")


async def test_an_address_takes_a_part_of_the_places_and_gives_them_back() -> None:
    world = World()
    for _ in range(2):
        world.lane.held = True
        for _ in range(MOST_OF_AN_ADDRESS):
            PlainExchange(world.passwords, HOST).step(b"\0alice\0wrong")
        with pytest.raises(CloseConnection, match="too many"):
            PlainExchange(world.passwords, HOST).step(b"\0alice\0wrong")
        other = PlainExchange(world.passwords, "192.0.2.2")
        other.step(b"\0alice\0pencil")
        while world.lane.waiting:
            world.lane.release()
        await asyncio.sleep(0)
        assert other.proven == Proof("alice", ALICE)


async def test_the_strongest_credential_is_compared() -> None:
    both = {ALICE: made(SHA_256, "old"), CredentialKey("alice", SHA_512): made(SHA_512, "new")}
    world = World()
    await world.users.store(both)
    assert (await world.ask(b"\0alice\0old"))[0] is None
    strongest = Proof("alice", CredentialKey("alice", SHA_512))
    assert (await world.ask(b"\0alice\0new"))[0] == strongest


def test_each_failure_waits_twice_as_long_up_to_five_seconds() -> None:
    clock = SimClock()
    delays = FailureDelays(clock.monotonic, 0.1)
    waited = [round(delays.failed("a"), 1) for _ in range(8)]
    assert waited == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert delays.failed("b") == 0.1
    clock.advance(61_000)
    assert delays.failed("a") == 0.1


def test_addresses_are_bounded_and_the_oldest_is_forgotten() -> None:
    delays = FailureDelays(SimClock().monotonic, 0.1)
    for number in range(10_001):
        delays.failed(str(number))
    assert delays.failed("1") == 0.2
    assert delays.failed("0") == 0.1
