"""Tokens of a provider at the HTTP port: whom they name, and what a client hears of a bad one."""

import pytest

from broker.http.port.identity import Identities
from broker.http.port.messages import ApiError
from broker.runtime.deferred import Deferred
from broker.security.sasl.exchange import Proof
from broker.security.sasl.oauthbearer import BadToken, Judge
from tests.unit.broker.http.port.test_identity import READ, READER, Delays, refusal, world

GOOD, BAD, LATER, LATER_BAD = "good.of.alice", "bad.of.alice", "later.of.alice", "later.of.eve"
REMOTE = READ._replace(address="10.0.0.7")


def judge(token: str) -> Proof | Deferred[Proof]:
    if token == BAD:
        raise BadToken("expired_token: for the operator")
    if token == GOOD:
        return Proof("alice", None)
    later: Deferred[Proof] = Deferred()
    if token == LATER:
        later.resolve(Proof("alice", None))
    else:
        later.fail(BadToken("no key"))
    return later


def listener(host: str = "127.0.0.1", judge: Judge | None = judge, **more: object) -> Identities:
    return world(host, judge=judge, **more)


@pytest.mark.parametrize("token", [GOOD, LATER])
async def test_a_token_names_its_user(token: str) -> None:
    caller = await listener().of_api(READ._replace(authorization=f"Bearer {token}"))
    assert (str(caller.principal), caller.is_known) == ("User:alice", True)
    assert (caller.sees_topic("a"), caller.sees_topic("b")) == (True, False)


@pytest.mark.parametrize("token", [BAD, LATER_BAD])
async def test_a_bad_token_is_told_late_and_the_reason_to_the_operator_alone(
    token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    delays = Delays()
    with pytest.raises(ApiError) as refused:
        await listener(delays=delays).of_api(READ._replace(authorization=f"Bearer {token}"))
    assert (refused.value.status, refused.value.code) == (401, "token")
    assert refused.value.headers["WWW-Authenticate"].startswith("Bearer")
    assert "operator" not in refused.value.message + str(refused.value.headers)
    assert delays.hosts == ["127.0.0.1"]
    logged = capsys.readouterr().err
    assert "mechanism=Bearer" in logged
    assert "detail=" in logged
    assert token not in logged


async def test_tokens_come_by_tls_or_from_the_machine_itself() -> None:
    everywhere = listener("0.0.0.0")
    asked = REMOTE._replace(authorization=f"Bearer {GOOD}")
    assert await refusal(everywhere, asked) == "token_in_the_clear"
    assert await refusal(everywhere, asked._replace(is_tls=True)) is None


async def test_tokens_of_the_broker_itself_count_as_before() -> None:
    asked = REMOTE._replace(authorization=f"Bearer {READER}")
    assert str((await listener("0.0.0.0").of_api(asked)).principal) == "Token:read"


@pytest.mark.parametrize("token", ["x", "a.b", "a.b.c.d", f"{READER}x", "."])
async def test_what_does_not_look_like_a_providers_token_is_judged_by_nobody(token: str) -> None:
    def never(_: str) -> Proof:
        raise AssertionError

    asked = READ._replace(authorization=f"Bearer {token}")
    assert await refusal(listener(judge=never), asked) == "token"


async def test_without_a_provider_no_such_token_is_taken() -> None:
    assert await refusal(listener(judge=None), READ._replace(authorization=f"Bearer {GOOD}"))
