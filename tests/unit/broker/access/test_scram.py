"""A client's side of SCRAM, against the broker's own, and against brokers that cheat."""

import base64

import pytest

from broker.access.errors import BrokerNotProven
from broker.access.scram import ScramClient
from broker.security.credentials import CredentialKey, Mechanism
from broker.security.delegation.token import TokenKey
from broker.security.delegation.tokens import Wish
from broker.security.sasl.exchange import InvalidCredentials
from broker.security.sasl.scram import ScramExchange
from tests.support.disk.simenv import SeededRng
from tests.support.worlds.known_tokens import tokens_on
from tests.support.worlds.known_users import made, users_of

SHA_256, SHA_512 = Mechanism
NAME = "a,=b"


def client(password: str = "pencil", mechanism: Mechanism = SHA_256) -> ScramClient:
    return ScramClient(mechanism.sasl_name, NAME, password, "nonce", by_token=False)


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_both_sides_prove_themselves(mechanism: Mechanism) -> None:
    key = CredentialKey(NAME, mechanism)
    exchange = ScramExchange(mechanism, users_of({key: made(mechanism)}), tokens_on(), SeededRng())
    one = client(mechanism=mechanism)
    one.check(exchange.step(one.final(exchange.step(one.first()))))
    assert exchange.proven is not None
    assert exchange.proven.credential == key
    again = ScramExchange(mechanism, users_of({key: made(mechanism)}), tokens_on(), SeededRng())
    wrong = client("pen", mechanism)
    with pytest.raises(InvalidCredentials):
        again.step(wrong.final(again.step(wrong.first())))


async def test_a_token_logs_in() -> None:
    tokens = tokens_on()
    token = await tokens.create(Wish("alice", "alice", (), -1))
    password = base64.b64encode(tokens.hmac_of(token)).decode()
    one = ScramClient(SHA_256.sasl_name, token.token_id, password, "nonce", by_token=True)
    exchange = ScramExchange(SHA_256, users_of({}), tokens, SeededRng())
    one.check(exchange.step(one.final(exchange.step(one.first()))))
    assert exchange.proven is not None
    assert exchange.proven.credential == TokenKey(token.token_id)


@pytest.mark.parametrize(
    "challenge",
    [
        b"", b"\xff", b"r=nonce1,s=AAAA", b"r=other,s=AAAA,i=4096", b"r=nonce1,s=?,i=4096",
        b"r=nonce1,s=AAAA,i=many", b"r=nonce1,s=AAAA,i=0", b"r=nonce1,s=AAAA,i=99999999",
    ],
)  # fmt: skip
def test_a_broker_that_speaks_nonsense_hears_nothing(challenge: bytes) -> None:
    with pytest.raises(BrokerNotProven):
        client().final(challenge)


@pytest.mark.parametrize("answer", [b"", b"v=AAAA", b"e=other-error"])
def test_a_broker_that_does_not_know_the_password_is_not_trusted(answer: bytes) -> None:
    one = client()
    one.final(b"r=nonce1,s=AAAA,i=4096")
    with pytest.raises(BrokerNotProven):
        one.check(answer)
