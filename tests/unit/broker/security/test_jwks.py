"""Sets of keys: what counts of them, hostile ones, when they are read, and what a failure does."""

import asyncio
import base64
import gc
import json
import time
from typing import Any

import pytest

from broker.runtime.deferred import Deferred
from broker.security.sasl.exchange import Proof
from broker.security.sasl.jwks import MOST_BYTES, SigningKeys, read_keys
from broker.security.sasl.key_source import ASKED_SECONDS, KeySource
from broker.security.sasl.oauthbearer import BadKeys, BadToken
from broker.security.sasl.signed_tokens import TokenRules
from config.security.oauth import OauthConfig
from tests.support.clients.issuer import AUDIENCE, NAME, Issuer, SigningKey, key_of
from tests.support.disk.simenv import SimClock

EC, RSA = key_of(), key_of("RSA", "two")


def as_set(*keys: Any) -> bytes:
    return json.dumps({"keys": list(keys)}).encode()


def public(key: SigningKey, **changes: Any) -> dict[str, Any]:
    return {**key.as_dict(private=False), **changes}


def number(value: int) -> str:
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_algorithms_are_those_that_the_keys_can_and_never_a_secret_or_none() -> None:
    assert read_keys(as_set(public(EC))).algorithms == {"ES256"}
    found = read_keys(as_set(public(EC), public(RSA), {"kty": "oct", "k": "c2VjcmV0", "kid": "s"}))
    assert found.algorithms == {"ES256", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
    assert len(found.keys.keys) == 2


NOT_FOR_US: list[Any] = [
    {"kty": "oct", "k": "c2VjcmV0"}, {"kty": "ML-DSA"}, {"kty": ["EC"]}, {}, 7, None, [], "EC",
    public(EC, use="enc"), public(EC, crv="P-999"), public(EC, x="AA"), public(EC, x=7),
    public(EC, x="*" * 43), public(EC, kid=7), public(EC, kid="k" * 3000),
    {"kty": "RSA", "n": number(2**1023 + 1), "e": "AQAB"},
    {"kty": "RSA", "n": number(2**16383 + 1), "e": "AQAB"},
    {"kty": "RSA", "n": number(2**8200 + 1), "e": "AQAB"},
    public(RSA, e=number(2**2000 + 1)), public(RSA, e=number(2**60 + 1)), public(RSA, e="AA"),
    public(RSA, n="A" * 500_000),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.parametrize("strange", NOT_FOR_US, ids=map(str, range(len(NOT_FOR_US))))
def test_keys_that_are_not_for_us_are_left_out_and_the_others_count(strange: Any) -> None:
    gc.freeze()  # what other tests have left is not looked through meanwhile
    began = time.thread_time()
    assert len(read_keys(as_set(strange, public(EC))).keys.keys) == 1
    with pytest.raises(BadKeys):
        read_keys(as_set(strange))
    assert time.thread_time() - began < 0.2


@pytest.mark.parametrize(
    "text",
    [
        b"", b"<html>", b"[]", b"7", b"{}", b'{"keys": {}}', b'{"keys": []}', b"\xff\xfe",
        b'{"keys":' * 1000, b"[" * 1_000_000, b'{"keys": [' + b"[" * 100_000,
        as_set(*[public(EC)] * 101), b" " * MOST_BYTES + b"{}", b'{"keys": [' + b"9" * 100_000,
    ],
    ids=lambda each: str(each)[:20],
)  # fmt: skip
def test_what_is_no_set_of_keys(text: bytes) -> None:
    gc.freeze()  # what other tests have left is not looked through meanwhile
    began = time.thread_time()
    with pytest.raises(BadKeys) as refused:
        read_keys(text)
    assert time.thread_time() - began < 0.2
    assert len(str(refused.value)) < 200


def test_private_parts_of_a_careless_provider_are_not_kept() -> None:
    found = read_keys(as_set(EC.as_dict(private=True), RSA.as_dict(private=True)))
    assert not any(key.is_private for key in found.keys)


class World:
    """A source of keys, and the provider behind it."""

    def __init__(self, **settings: Any) -> None:
        self.clock = SimClock()
        self.issuer = Issuer(EC, now=lambda: self.clock.now_ms() / 1000)
        config = OauthConfig(expected_issuer=NAME, expected_audience=(AUDIENCE,), **settings)
        rules = TokenRules(config, self.clock.now_ms)
        self.source = KeySource(config, rules, self._read, self.clock.monotonic)
        self.readings = 0
        self.is_down = False
        self.gate: asyncio.Event | None = None

    async def _read(self) -> SigningKeys:
        self.readings += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.is_down:
            raise BadKeys("no answer")
        return read_keys(json.dumps(self.issuer.published).encode())

    async def after(self, seconds: float) -> int:
        """Readings in all once this time has passed, looked at each second."""
        for _ in range(int(seconds)):
            self.clock.advance(1000)
            await self.source.refresh()
        return self.readings


def heard(answer: Deferred[Proof]) -> list[Any]:
    found: list[Any] = []
    answer.listen(lambda *each: found.extend(each))
    return found


async def test_keys_are_read_at_once_and_then_now_and_then() -> None:
    world = World()
    await world.source.refresh()
    assert world.source.judge(world.issuer.token()) == Proof(
        "alice", None, ends_ms=world.clock.now_ms() // 1000 * 1000 + 300_000
    )
    assert await world.after(3599) == 1
    assert await world.after(1) == 2


async def test_the_last_good_keys_stay_and_tries_grow_rare() -> None:
    world = World(jwks_endpoint_refresh_ms=1000)
    await world.source.refresh()
    world.is_down = True
    assert 10 <= await world.after(60) <= 15
    assert world.source.failures == world.readings - 1
    assert world.source.failure == "no answer"
    assert isinstance(world.source.judge(world.issuer.token()), Proof)
    world.is_down = False
    await world.after(10)
    assert world.source.failure == ""


async def test_without_any_key_nobody_gets_in_and_the_broker_does_not_wait() -> None:
    world = World()
    world.is_down = True
    await world.source.refresh()
    answer = world.source.judge(world.issuer.token())
    assert isinstance(answer, Deferred)
    world.clock.advance(59_000)
    others = [world.source.judge(world.issuer.token()) for _ in range(50)]
    assert all(isinstance(each, Deferred) for each in others)
    found = heard(answer)
    await world.source.refresh()
    assert isinstance(found[1], BadToken)
    with pytest.raises(BadToken):
        world.source.judge(world.issuer.token())


async def test_a_new_key_lets_in_who_waits_for_it() -> None:
    world = World()
    await world.source.refresh()
    world.issuer.keys.insert(0, key_of(kid="new"))
    answer = world.source.judge(world.issuer.token())
    assert isinstance(answer, Deferred)
    found = heard(answer)
    await world.source.refresh()
    assert found[0].user == "alice"
    assert world.readings == 2


async def test_a_flood_of_unknown_keys_asks_once_a_minute() -> None:
    world = World()
    await world.source.refresh()
    strangers = [world.issuer.token(key=key_of(kid=f"kid-{number}")) for number in range(20)]
    for _ in range(180):
        for token in strangers:
            try:
                answer = world.source.judge(token)
            except BadToken:
                continue
            assert isinstance(answer, Deferred)
        await world.after(1)
    assert world.readings <= 1 + 180 / ASKED_SECONDS + 1
    assert isinstance(world.source.judge(world.issuer.token()), Proof)


async def test_who_waits_is_bounded_and_a_slow_answer_holds_up_nobody_else() -> None:
    world = World()
    await world.source.refresh()
    world.gate = asyncio.Event()
    world.clock.advance(3_600_000)
    reading = asyncio.create_task(world.source.refresh())
    await asyncio.sleep(0)
    token = world.issuer.token(key=key_of(kid="x"))
    waiting = 0
    for _ in range(3000):
        try:
            world.source.judge(token)
            waiting += 1
        except BadToken:
            pass
    assert waiting == 1000
    assert isinstance(world.source.judge(world.issuer.token()), Proof)
    world.gate.set()
    await reading
