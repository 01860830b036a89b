"""OAUTHBEARER: the client's message in its grammar, and what a token that does not hold hears."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.runtime.deferred import Deferred
from broker.security.sasl.exchange import AuthenticationFailed, InvalidCredentials, Proof
from broker.security.sasl.oauthbearer import (
    BadToken,
    FirstMessage,
    MalformedMessage,
    OauthExchange,
    first_message,
)

ALICE = Proof("alice", None, ends_ms=5)
GOOD = b"n,,\x01auth=Bearer a.b.c\x01\x01"


def judge(token: str) -> Proof:
    if token != "a.b.c":
        raise BadToken("expired")
    return ALICE


@pytest.mark.parametrize(
    ("data", "authzid", "token", "extensions"),
    [
        (GOOD, "", "a.b.c", {}),
        (b"n,a=bob,\x01auth=Bearer x==\x01\x01", "bob", "x==", {}),
        (b"n,a=b=2Cc=3D,\x01auth=bEARER   x\x01\x01", "b=2Cc=3D", "x", {}),
        (b"n,,\x01k=v w\x01auth=Bearer x\x01\x01", "", "x", {"k": "v w"}),
        (b"n,,\x01auth=Bearer x\x01K=\t~\r\n\x01\x01", "", "x", {"K": "\t~\r\n"}),
        (b"n,,\x01auth=Bearer x\x01k=a=b\x01k=c\x01\x01", "", "x", {"k": "c"}),
    ],
)  # fmt: skip
def test_messages_of_clients(
    data: bytes, authzid: str, token: str, extensions: dict[str, str]
) -> None:
    assert first_message(data) == FirstMessage(authzid, token, extensions)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x01", b"n,,", b"n,,\x01", b"n,,\x01\x01", b"n,,\x01k=v\x01\x01",
        b"y,,\x01auth=Bearer x\x01\x01", b"p=x,,\x01auth=Bearer x\x01\x01",
        b"n,a=,\x01auth=Bearer x\x01\x01", b"n,b=x,\x01auth=Bearer x\x01\x01",
        b"n,a=x=y,\x01auth=Bearer x\x01\x01", b"n,a=\xc3\xa4,\x01auth=Bearer x\x01\x01",
        b"n,a=x,y,\x01auth=Bearer x\x01\x01", b"n,a=a\0b,\x01auth=Bearer x\x01\x01",
        b"n,,auth=Bearer x\x01\x01", b"n,,\x01auth=Bearer x\x01", b"n,,\x01auth=Bearer x",
        b"n,,\x01auth=Bearer x\x01\x01z", b"n,,\x01auth=Bearer x\x01\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01", b"n,,\x01auth=Bearer \x01\x01", b"n,,\x01auth=x\x01\x01",
        b"n,,\x01auth=Basic x\x01\x01", b"n,,\x01auth=Bearer x y\x01\x01",
        b"n,,\x01auth=Bearer x=y\x01\x01", b"n,,\x01auth=Bearer ==\x01\x01",
        b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01", b"n,,\x01auth=Bearer \xe4\x01\x01",
        b"n,,\x01auth=Bearer x\x01k=\x01\x01", b"n,,\x01auth=Bearer x\x01k1=v\x01\x01",
        b"n,,\x01auth=Bearer x\x01=v\x01\x01", b"n,,\x01auth=Bearer x\x01k=\xe4\x01\x01",
        b"n,,\x01auth=Bearer x\x01\xc3\xa4=v\x01\x01", b"n,,\x01auth=Bearer x\x01k=\0\x01\x01",
    ],
)  # fmt: skip
def test_what_is_no_message(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        first_message(data)
    with pytest.raises(InvalidCredentials):
        OauthExchange(judge).step(data)


@given(st.binary(max_size=60) | st.text("n,a=\x01auth=Ber x.", max_size=60).map(str.encode))
def test_any_bytes_are_a_message_or_malformed(data: bytes) -> None:
    try:
        found = first_message(data)
    except MalformedMessage:
        return
    assert found.token
    assert data.startswith(b"n,")


def test_a_good_token_lets_in() -> None:
    exchange = OauthExchange(judge)
    assert exchange.step(GOOD) == b""
    assert exchange.proven == ALICE


def test_a_bad_token_hears_its_status_and_then_the_failure() -> None:
    """The second message is the byte 0x01; whatever it is, there is no second try."""
    for second in (b"\x01", GOOD, b""):
        exchange = OauthExchange(judge)
        assert exchange.step(b"n,,\x01auth=Bearer bad\x01\x01") == b'{"status":"invalid_token"}'
        with pytest.raises(AuthenticationFailed) as failed:
            exchange.step(second)
        assert (str(failed.value), failed.value.detail) == (
            '{"status":"invalid_token"}',
            "expired",
        )
        assert exchange.proven is None


def test_an_authorization_id_is_that_of_the_token() -> None:
    exchange = OauthExchange(judge)
    assert exchange.step(b"n,a=alice,\x01auth=Bearer a.b.c\x01\x01") == b""
    text = (
        r"Authentication failed: Client requested an authorization id \(bob\) that is different "
        r"from the token's principal name \(alice\)"
    )
    exchange = OauthExchange(judge)
    with pytest.raises(AuthenticationFailed, match=text):
        exchange.step(b"n,a=bob,\x01auth=Bearer a.b.c\x01\x01")
    assert exchange.proven is None


def test_a_token_that_is_judged_later() -> None:
    for outcome, answer in ((ALICE, b""), (BadToken("x"), b'{"status":"invalid_token"}')):
        waiting: Deferred[Proof] = Deferred()
        exchange = OauthExchange(lambda _, waiting=waiting: waiting)
        step = exchange.step(GOOD)
        assert isinstance(step, Deferred)
        heard: list[object] = []
        step.listen(lambda *each, heard=heard: heard.extend(each))
        if isinstance(outcome, Proof):
            waiting.resolve(outcome)
        else:
            waiting.fail(outcome)
        assert heard == [answer, None]
        assert exchange.proven == (ALICE if outcome is ALICE else None)


def test_an_authorization_id_is_looked_at_when_the_judge_took_its_time() -> None:
    waiting: Deferred[Proof] = Deferred()
    step = OauthExchange(lambda _: waiting).step(b"n,a=bob,\x01auth=Bearer a.b.c\x01\x01")
    assert isinstance(step, Deferred)
    heard: list[object] = []
    step.listen(lambda *each: heard.extend(each))
    waiting.resolve(ALICE)
    assert isinstance(heard[1], AuthenticationFailed)
