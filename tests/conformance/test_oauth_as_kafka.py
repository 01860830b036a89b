"""OAUTHBEARER and re-authentication: the same messages to a real Kafka, and the same answers."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc import jws

from tests.integration.test_oauth import first_message, in_clear, is_served, say, shake, start
from tests.support.clients.issuer import AUDIENCE, NAME, Issuer, key_of, raw_token
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import available, start_kafka

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
ISSUER = Issuer(key_of(), key_of("RSA", "rsa"))
CLOSED = "closed"
Answers = dict[str, list[Any]]
Step = Callable[[WireClient], Any]


def token(user: str = "alice", seconds: float = 100, **changes: Any) -> Step:
    return lambda client: _told(say(client, first_message(ISSUER.token(user, seconds, **changes))))


def message(text: str) -> Step:
    """A client's message, in which TOKEN is a good one."""
    return lambda client: _told(say(client, text.replace("TOKEN", ISSUER.token()).encode()))


def forged(made: Callable[[], str]) -> Step:
    return lambda client: _told(say(client, first_message(made())))


def begin(mechanism: str = "OAUTHBEARER") -> Step:
    def step(client: WireClient) -> Any:
        answer = shake(client, mechanism)
        return answer.error_code, sorted(answer.mechanisms)

    return step


def wait(seconds: float) -> Step:
    return lambda _: time.sleep(seconds)


def end(client: WireClient) -> Any:
    return client.receive_all()


def _told(answer: Any) -> Any:
    has_end = answer.session_lifetime_ms > 0
    return answer.error_code, answer.error_message, bytes(answer.auth_bytes), has_end


def _twice() -> str:
    claims = json.dumps(ISSUER.claims())[:-1] + ',"sub":"bob"}'
    return jws.serialize_compact({"alg": "ES256", "kid": "one"}, claims, ISSUER.keys[0])


def _soon(seconds: float) -> int:
    return int(time.time() + seconds)


BAD = (message("\x01"), end)
FIRST: dict[str, tuple[Step, ...]] = {
    "good": (token(), is_served),
    "signed by RSA": (forged(lambda: ISSUER.token(key=ISSUER.keys[1])), is_served),
    "without kid": (token(header={"kid": None}), is_served),
    "more in the header": (token(header={"typ": "at+jwt", "x": "y"}), is_served),
    "without scope": (token(scope=None), is_served),
    "scope is a number": (token(scope=7), is_served),
    "blanks around the user": (token(sub=" alice "), is_served),
    "issued before": (token(iat=_soon(-900), seconds=50), is_served),
    "ended, within the skew": (token(iat=_soon(-900), seconds=-10),),
    "same authorization id": (message("n,a=alice,\x01auth=Bearer TOKEN\x01\x01"), is_served),
    "other authorization id": (message("n,a=bob,\x01auth=Bearer TOKEN\x01\x01"), end),
    "extension": (message("n,,\x01auth=Bearer TOKEN\x01foo=bar\x01\x01"), is_served),
    "bad extension": (message("n,,\x01auth=Bearer TOKEN\x01f1=bar\x01\x01"), end),
    "no message": (message("xyz"), end),
    "nothing": (message(""), end),
    "0x01": (message("\x01"), end),
    "ended": (token(iat=_soon(-900), seconds=-60), *BAD),
    "another issuer": (token(iss="x"), *BAD),
    "another audience": (token(aud="x"), *BAD),
    "no user": (token(sub=None), *BAD),
    "no time": (token(iat=None), *BAD),
    "no end": (token(exp=None), *BAD),
    "a scope twice": (token(scope=["a", "a"]), *BAD),
    "issued later": (token(iat=_soon(5000), seconds=9000),),
    "not yet": (token(nbf=_soon(5000), seconds=9000), *BAD),
    "a claim twice": (forged(_twice), *BAD),
    "no signature": (forged(lambda: raw_token({"alg": "none"}, ISSUER.claims())), *BAD),
    "unknown key": (forged(lambda: ISSUER.token(key=key_of(kid="x"))), *BAD),
}
AGAIN: dict[str, tuple[Step, ...]] = {
    "again": (begin(), token(), is_served),
    "again, too soon": (begin(), token(), begin(), is_served),
    "another user": (begin(), token("bob"), end),
    "a bad token": (begin(), token(aud="x"), *BAD),
    "no message again": (begin(), message("x"), end),
    "unknown mechanism": (begin("GSSAPI"),),
    "another mechanism": (begin("PLAIN"), message("\0a\0b")),
    "a request between": (begin(), is_served, end),
    "a token without handshake": (message("x"), is_served),
    "after the end": (wait(3.1), is_served),
    "after the end, again": (wait(3.1), begin(), token(), is_served),
}
OURS_IS_STRICTER = {"issued later"}


def heard(connect: Callable[[], WireClient]) -> Answers:
    """What each client hears, up to the end of its connection."""
    stories = {name: (begin(), *steps) for name, steps in FIRST.items()}
    stories |= {name: (begin(), token(seconds=3), *steps) for name, steps in AGAIN.items()}
    return {name: list(_lived(connect, steps)) for name, steps in stories.items()}


def _lived(connect: Callable[[], WireClient], steps: tuple[Step, ...]) -> Iterator[Any]:
    with connect() as client:
        for step in steps:
            try:
                yield step(client)
            except (ConnectionError, OSError):
                yield CLOSED
                return


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def of_kafka(folder: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> Answers:
    plain, sasl, controller = _free_port(), _free_port(), _free_port()
    allowed = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"
    options = f"{allowed}.urls=file://{file} {allowed}.files={file}"
    monkeypatch.setitem(os.environ, "JAVA_TOOL_OPTIONS", options)
    own = "listener.name.sasl."
    handler = f"{PACKAGE}.OAuthBearerValidatorCallbackHandler"
    plain_jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required user_a=b;"
    clients = f"PLAINTEXT://127.0.0.1:{plain},SASL://127.0.0.1:{sasl}"
    settings = {
        "listeners": f"{clients},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": clients,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        f"{own}sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN",
        f"{own}oauthbearer.sasl.jaas.config": f"{PACKAGE}.OAuthBearerLoginModule required ;",
        f"{own}oauthbearer.sasl.server.callback.handler.class": handler,
        f"{own}plain.sasl.jaas.config": plain_jaas,
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{file}",
        "sasl.oauthbearer.expected.issuer": NAME,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
    }
    with start_kafka(folder / "kafka", settings, listen=f"127.0.0.1:{plain}"):
        return heard(lambda: WireClient("127.0.0.1", sasl))


def test_the_answers_are_those_of_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps(ISSUER.published))
    expected = of_kafka(tmp_path, file, monkeypatch)
    with start(
        tmp_path, f"file://{file}", **{"sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN"}
    ) as node:
        found = heard(lambda: in_clear(node))
    different = {name for name, answers in expected.items() if found[name] != answers}
    for name in different:
        print(f"{name}\n  ours  {found[name]}\n  Kafka {expected[name]}")
    print(f"{len(expected)} exchanges")
    assert different == OURS_IS_STRICTER
