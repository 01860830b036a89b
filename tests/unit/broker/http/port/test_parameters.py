"""What is asked with a question is understood, or refused by name."""

import pytest

from broker.http.port.messages import ApiError, Request, rendered
from broker.http.port.parameters import (
    DURATION,
    INSTANT,
    SPEED,
    Parameter,
    count,
    given,
    understood,
    word,
)

PARAMETERS = (
    Parameter("limit", count(1, 10), "How many", 5),
    Parameter("at", INSTANT, "When"),
    Parameter("by", DURATION, "How long"),
    Parameter("clock", word("record", "arrival"), "Which", "record"),
    Parameter("factor", SPEED, "How fast"),
)


def post(query: str = "", body: bytes = b"") -> Request:
    return Request("POST", "/x", query, body=body)


def fields(query: str = "", body: bytes = b"") -> dict[str, object]:
    texts = given(post(query, body))
    return {
        name: value
        for name, value in understood(texts, PARAMETERS, 1000, takes_settings=False)[0].items()
        if name in texts
    }


def test_query_and_body_say_the_same() -> None:
    assert fields("limit=3&by=1h&clock=arrival") == {
        "limit": 3, "by": 3_600_000, "clock": "arrival"
    }  # fmt: skip
    assert fields(body=b'{"limit": 3, "factor": 1.5, "at": "-1s"}') == {
        "limit": 3, "factor": 1.5, "at": 0
    }  # fmt: skip
    assert fields("limit=3", b'{"by": "2m"}') == {"limit": 3, "by": 120_000}


def test_what_is_not_said_has_its_default() -> None:
    found, _ = understood({}, PARAMETERS, 0, takes_settings=False)
    assert found == {"limit": 5, "at": None, "by": None, "clock": "record", "factor": None}


@pytest.mark.parametrize(
    ("query", "body", "word"),
    [
        ("limit=11", b"", "limit: 11 is out of bounds"),
        ("limit=x", b"", "limit:"),
        ("limit=", b"", "limit:"),
        ("clock=sun", b"", "record, arrival"),
        ("limt=3", b"", "did you mean limit"),
        ("limit=3&limit=4", b"", "limit is given more than once"),
        ("limit=3", b'{"limit": 3}', "limit is given more than once"),
        ("", b'{"limit": 3, "limit": 4}', "limit is given more than once"),
        ("", b"[1]", "JSON object"),
        ("", b"{", "not JSON"),
        ("", b"\xff", "not JSON"),
        ("", b"[" * 60_000, "not JSON"),
        ("", b'{"limit": [1]}', "text or a number"),
        ("", b'{"limit": null}', "text or a number"),
        ("", b'{"by": ' + b"9" * 5000 + b"}", ""),
        ("limit", b"", "query"),
        ("limit=%ff", b"", "query"),
        ("&".join(f"a{n}=1" for n in range(101)), b"", "query"),
    ],
)
def test_what_cannot_be_is_refused_by_name(query: str, body: bytes, word: str) -> None:
    with pytest.raises(ApiError) as refused:
        fields(query, body)
    assert refused.value.status == 400
    assert word in refused.value.message
    assert len(refused.value.message) < 500


def test_one_that_is_needed_is_asked_for() -> None:
    needed = (Parameter("by", DURATION, "How much", required=True),)
    with pytest.raises(ApiError, match="by is missing: how much"):
        understood({}, needed, 0, takes_settings=False)


def test_settings_are_what_is_no_parameter() -> None:
    texts = {"limit": "3", "retention.ms": "1h"}
    found, settings = understood(texts, PARAMETERS, 0, takes_settings=True)
    assert found["limit"] == 3
    assert settings == {"retention.ms": "1h"}


def test_answers_are_plain_json_whatever_their_parts_are() -> None:
    import json

    value = {"a": [], "b": {}, "c": [{"x": [1, None]}, {"y": "\u2028<script>"}], "d": {"e": [1, 2]}}
    assert json.loads(rendered(value)) == value
    assert rendered(value).endswith(b"\n")
