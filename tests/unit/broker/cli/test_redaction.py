"""Nothing that is a secret, or looks like one, is left; what is none stays readable."""

import json

import pytest

from broker.cli.redaction import Redactor

CANARY = "s3cr3t-canary"


@pytest.mark.parametrize(
    "text",
    [
        f"password={CANARY}",
        f"ssl.keystore.password = {CANARY}",
        f'sasl.jaas.config=org.x.PlainLoginModule required username="u" password="{CANARY}";',
        f'{{"name": "db.password", "secret": "{CANARY}"}}',
        f'{{"api_key": "{CANARY} with blanks"}}',
        f"Authorization: Bearer {CANARY}",
        f"authorization: basic {CANARY}==",
        f"https://user:{CANARY}@registry.example/x",
        f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END RSA PRIVATE KEY-----\n",
        f"-----BEGIN PRIVATE KEY-----\n{CANARY} and it is cut",
        f"Credentials: '{CANARY}'",
        f"passphrase:{CANARY}, x",
        f"SASL_SECRET_KEY={CANARY}",
        f"ssl.key.password={CANARY}\\",
    ],
)
def test_what_looks_like_a_secret_goes(text: str) -> None:
    assert CANARY not in Redactor().hide(text)


def test_a_known_secret_goes_wherever_it_stands() -> None:
    hidden = Redactor([CANARY, f"{CANARY}-longer", "", "ab"]).hide(f"x{CANARY}y {CANARY}-longer ab")
    assert hidden == "x***y *** ab"


@pytest.mark.parametrize(
    "text",
    [
        'horolog_request_errors_total{api="Produce"} 5',
        "time=2026 level=info event=ready bootstrap=127.0.0.1:9092 topics=3",
        "log.dirs = /var/lib/horolog    [server.yaml:3]",
        '{"topic": "secrets", "partitions": 3}',
        "# HELP x File with the token that changes need.",
    ],
)
def test_the_rest_stays(text: str) -> None:
    assert Redactor([CANARY]).hide(text) == text


def test_json_stays_json() -> None:
    content = {"a": 1, "password": f'{CANARY}"x', "list": [{"token": CANARY, "b": "c"}]}
    found = json.loads(Redactor().hide(json.dumps(content)))
    assert found == {"a": 1, "password": "***", "list": [{"token": "***", "b": "c"}]}
