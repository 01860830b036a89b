"""SCRAM: the vectors of RFC 7677, scramp as the other side, and everything that must fail."""

import base64
import hashlib
import hmac
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient

from broker.security.credentials import (
    Credential,
    CredentialKey,
    Mechanism,
    derived,
    is_password,
    salted,
)
from broker.security.sasl.exchange import InvalidCredentials, Proof
from broker.security.sasl.scram import Malformed, ScramExchange, final_token, first_token
from broker.security.users_file import UserTable, render
from storage.env import Rng
from tests.support.disk.simenv import SeededRng
from tests.support.worlds.known_tokens import tokens_on
from tests.support.worlds.known_users import users_of

SHA_256, SHA_512 = Mechanism
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def credential(
    mechanism: Mechanism, password: str = "pencil", iterations: int = 4096
) -> Credential:
    return derived(
        mechanism, salted(mechanism, password.encode(), SALT, iterations), SALT, iterations
    )


def proof(mechanism: Mechanism) -> Proof:
    return Proof("user", CredentialKey("user", mechanism))


@pytest.fixture(params=list(Mechanism), ids=lambda each: each.sasl_name)
def mechanism(request: Any) -> Mechanism:
    return request.param


def exchange_of(mechanism: Mechanism, rng: Rng | None = None) -> ScramExchange:
    users = users_of({CredentialKey("user", mechanism): credential(mechanism)})
    return ScramExchange(mechanism, users, tokens_on(), rng or SeededRng())


def test_the_exchange_of_rfc_7677() -> None:
    known = credential(SHA_256)
    first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = b"rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    challenge = b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    exchange = ScramExchange(
        SHA_256, users_of({CredentialKey("user", SHA_256): known}), tokens_on(), SeededRng()
    )
    exchange.step(first)
    exchange._challenge = challenge
    final = b"c=biws,r=" + nonce + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert exchange.step(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert exchange.proven == proof(SHA_256)


def test_a_password_is_compared() -> None:
    assert is_password(SHA_256, credential(SHA_256), b"pencil")
    assert not is_password(SHA_256, credential(SHA_256), b"Pencil")


def talk(exchange: ScramExchange, client: Any) -> None:
    client.set_server_first(exchange.step(client.get_client_first().encode()).decode())
    client.set_server_final(exchange.step(client.get_client_final().encode()).decode())


def test_a_client_of_another_make_gets_in(mechanism: Mechanism) -> None:
    exchange = exchange_of(mechanism)
    talk(exchange, ScramClient([mechanism.sasl_name], "user", "pencil"))
    assert exchange.proven == proof(mechanism)


@pytest.mark.parametrize(("name", "password"), [("user", "pen"), ("nobody", "pencil")])
def test_wrong_names_and_passwords_fail_alike(
    mechanism: Mechanism, name: str, password: str
) -> None:
    exchange = exchange_of(mechanism)
    client = ScramClient([mechanism.sasl_name], name, password)
    client.set_server_first(exchange.step(client.get_client_first().encode()).decode())
    with pytest.raises(InvalidCredentials):
        exchange.step(client.get_client_final().encode())
    assert exchange.proven is None


def test_an_unknown_user_gets_the_same_salt_each_time_and_looks_like_one() -> None:
    users = users_of({CredentialKey("user", SHA_256): credential(SHA_256, iterations=8192)})
    one, again = (users.credential_or_decoy("nobody", SHA_256) for _ in range(2))
    other = users.credential_or_decoy("noone", SHA_256)
    assert one == again
    assert one.salt != other.salt
    assert one.iterations == 8192
    assert 20 <= len(one.salt) <= 26
    assert one.salt.isalnum()
    assert one.salt == one.salt.lower()


class Tampered:
    """A right exchange of `user`, but for one thing."""

    def __init__(self, **changes: str) -> None:
        self.header = changes.get("header", "n,,")
        self.bare = changes.get("bare", "n=user,r=abcdef")
        self.binding = changes.get("binding", self.header)
        self.extension = changes.get("extension", "")
        self.nonce = changes.get("nonce")
        self.before_nonce = changes.get("before_nonce", "")
        self.cut = int(changes.get("cut", "0"))

    def run(self) -> ScramExchange:
        exchange = exchange_of(SHA_256)
        challenge = exchange.step((self.header + self.bare).encode()).decode()
        nonce = self.nonce or self.before_nonce + challenge[2:].partition(",")[0]
        binding = base64.b64encode(self.binding.encode()).decode()
        without = f"c={binding},r={nonce}{self.extension}"
        key = salted(SHA_256, b"pencil", SALT, 4096)
        client_key = hmac.digest(key, b"Client Key", "sha256")
        message = f"{self.bare},{challenge},{without}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        proof = proof[: len(proof) - self.cut]
        exchange.step(f"{without},p={base64.b64encode(proof).decode()}".encode())
        return exchange


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"header": "n,a=user,"},
        {"bare": "n=user,r=abcdef,tokenaut=false"},
        {"extension": ",x=y"},
        {"before_nonce": "abcdef"},  # as librdkafka before 2.6.1 sends it
    ],
)
def test_what_the_rfc_allows_gets_in(changes: dict[str, str]) -> None:
    assert Tampered(**changes).run().proven == proof(SHA_256)


@pytest.mark.parametrize(
    "changes",
    [
        {"header": "n,a=admin,"},
        {"header": "y,,"},
        {"header": "p=tls-unique,,"},
        {"binding": "y,,"},
        {"binding": "\0\0"},
        {"nonce": "abcdef"},
        {"nonce": "abcde"},
        {"before_nonce": "abcde"},
        {"before_nonce": "abcdefabcdef"},
        {"cut": "1"},
        {"cut": "32"},
        {"extension": ",m=x"},
        {"bare": "m=x,n=user,r=abcdef"},
        {"bare": "n=user,r=abcdef,m=x"},
        {"bare": "n=us=er,r=abcdef"},
        {"bare": "n=,r=abcdef"},
        {"bare": "n=user,r="},
        {"bare": "r=abcdef,n=user"},
        {"bare": "n=user"},
    ],
)
def test_what_the_rfc_forbids_stays_out(changes: dict[str, str]) -> None:
    with pytest.raises(InvalidCredentials):
        Tampered(**changes).run()


async def test_a_user_that_is_removed_between_the_tokens_stays_out() -> None:
    users = users_of({CredentialKey("user", SHA_256): credential(SHA_256)})
    exchange = ScramExchange(SHA_256, users, tokens_on(), SeededRng())
    client = ScramClient(["SCRAM-SHA-256"], "user", "pencil")
    client.set_server_first(exchange.step(client.get_client_first().encode()).decode())
    removed: list[CredentialKey] = []
    users.on_removed = removed.append
    await users.store({})
    assert removed == [CredentialKey("user", SHA_256)]
    with pytest.raises(InvalidCredentials):
        exchange.step(client.get_client_final().encode())


@pytest.mark.parametrize(("password", "gets_in"), [("pencil", True), ("changed", False)])
async def test_users_of_a_fleet_that_are_read_again_between_the_tokens(
    password: str, gets_in: bool
) -> None:
    """Another node has changed some user: who is as before gets in, a changed one does not."""
    key = CredentialKey("user", SHA_256)
    users = users_of({key: credential(SHA_256)})
    exchange = ScramExchange(SHA_256, users, tokens_on(), SeededRng())
    client = ScramClient(["SCRAM-SHA-256"], "user", "pencil")
    client.set_server_first(exchange.step(client.get_client_first().encode()).decode())
    other = CredentialKey("other", SHA_256)
    rows = {key: credential(SHA_256, password), other: credential(SHA_256)}
    await users.follow(render(UserTable(bytes(32), rows)))
    with nullcontext() if gets_in else pytest.raises(InvalidCredentials):
        exchange.step(client.get_client_final().encode())
    assert exchange.proven == (proof(SHA_256) if gets_in else None)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_names_survive_their_escapes(name: str) -> None:
    written = name.replace("=", "=3D").replace(",", "=2C")
    assert first_token(f"n,,n={written},r=x".encode()).user == name


@given(
    st.binary(max_size=80)
    | st.lists(
        st.sampled_from(
            [
                b"n,",
                b"a=",
                b"n=",
                b"r=",
                b"c=",
                b"p=",
                b",",
                b"=",
                b"=2C",
                b"biws",
                b"x",
                b"\xff",
                b"\0",
            ]
        )
    ).map(b"".join)
)
def test_strange_tokens_are_refused_and_nothing_else(token: bytes) -> None:
    for read in (first_token, final_token):
        try:
            read(token)
        except Malformed:
            continue
