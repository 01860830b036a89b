"""The file of delegation tokens is believed whole or not at all, and holds no password."""

import base64
import json
from typing import Any

import pytest

from broker.security.credentials import Mechanism
from broker.security.delegation.token import DelegationToken, TokenSecret
from broker.security.delegation.tokens_file import parse, render, row_text
from config.sealed_json import sealed
from storage.errors import CorruptCheckpoint, NewerFormat

SECRET = TokenSecret("a secret of tests")


def token(token_id: str, *renewers: str) -> DelegationToken:
    credentials = {each: SECRET.credential(token_id, each) for each in Mechanism}
    return DelegationToken(
        token_id, "alice", "admin", renewers, 1000, 2000, 3000, SECRET.mark, credentials
    )


TOKENS = [token("one", "bob", "carol"), token("two")]
TEXT = render([row_text(each) for each in TOKENS]).decode()


def test_the_file_says_what_was_written() -> None:
    assert parse("f", TEXT) == TOKENS
    assert parse("f", render([]).decode()) == []
    assert json.loads(TEXT) == sealed(document())
    assert len(TEXT.splitlines()) == len(TOKENS) + 2


def test_the_file_tells_no_password() -> None:
    for each in TOKENS:
        assert base64.b64encode(SECRET.hmac_of(each.token_id)).decode() not in TEXT
        assert SECRET.hmac_of(each.token_id).hex() not in TEXT
    assert "a secret" not in TEXT
    assert "stored_key" not in repr(TOKENS)
    assert "a secret" not in repr(SECRET)


def document() -> Any:
    found = json.loads(TEXT)
    del found["checksum"]
    return found


def edited(**changes: Any) -> str:
    found = document()
    found["tokens"][0].update(changes)
    return json.dumps(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[" * 100_000,
        json.dumps(document() | {"tokens": [document()["tokens"][0]] * 2}),
        json.dumps(document() | {"tokens": {"one": 1}}),
        json.dumps(document() | {"checksum": "00000000"}),
        edited(id=""),
        edited(owner=3),
        edited(renewers=[None]),
        edited(renewers=7),
        edited(expires_ms="2000"),
        edited(issued_ms=-1),
        edited(latest_ms=None),
        edited(made_by="not base64"),
        edited(credentials={}),
        edited(credentials={"SCRAM-SHA-1": {}}),
        edited(credentials={"SCRAM-SHA-256": document()["tokens"][0]["credentials"]}),
    ],
)
def test_a_damaged_file_is_refused(text: str) -> None:
    with pytest.raises(CorruptCheckpoint):
        parse("f", text)


def test_a_newer_file_is_refused() -> None:
    with pytest.raises(NewerFormat):
        parse("f", json.dumps({"format": 2}))
