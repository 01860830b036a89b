"""Who may ask by which name, from which page."""

import pytest

from broker.http.port.access import AccessControl
from broker.http.port.messages import ApiError, Request

READ = Request("GET", "/api/topics", "", "127.0.0.1:9404")
CHANGE = READ._replace(method="POST", path="/api/clock/confirm")


def refusal(gate: AccessControl, request: Request) -> str | None:
    """The code of the refusal, None when the request is let in."""
    try:
        gate.check(request)
    except ApiError as error:
        return error.code
    return None


def loopback(*, names: str = "") -> AccessControl:
    return AccessControl("127.0.0.1", names.split())


def everywhere(*, names: str = "") -> AccessControl:
    return AccessControl("0.0.0.0", names.split())


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:9404", "localhost:9404", "LocalHost", "localhost.", "[::1]:9404"],
)
def test_names_of_this_machine_are_known(host: str) -> None:
    assert refusal(loopback(), READ._replace(host=host)) is None


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:9404", "localhost.evil.example", "127.0.0.1.evil.example",
     "10.0.0.1:9404", "0x7f000001", "[fe80::1]"],
)  # fmt: skip
def test_a_page_whose_name_leads_here_is_refused(host: str) -> None:
    assert refusal(loopback(), READ._replace(host=host)) == "foreign_host"


@pytest.mark.parametrize(
    "host", [None, "", ":9404", "a b:1:2:3", "127.0.0.1:port", "[::1", "u@127.0.0.1", "localhost/x"]
)
def test_a_host_that_is_none_is_refused(host: str | None) -> None:
    assert refusal(loopback(), READ._replace(host=host)) in {"bad_host", "foreign_host"}


def test_names_that_are_set_and_addresses_of_an_open_listener_are_known() -> None:
    asked = READ
    gate = everywhere(names="broker.internal horolog")
    for host in ("broker.internal:9404", "HOROLOG", "10.1.2.3:9404", "[fd00::1]:9404"):
        assert refusal(gate, asked._replace(host=host)) is None
    assert refusal(gate, asked._replace(host="evil.example")) == "foreign_host"
    assert refusal(loopback(names="horolog"), READ._replace(host="horolog:1")) is None


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        ("http://127.0.0.1:9404", None),
        ("https://127.0.0.1:9404", None),
        ("http://127.0.0.1:8080", "foreign_origin"),
        ("http://evil.example", "foreign_origin"),
        ("null", "foreign_origin"),
        ("http://[", "foreign_origin"),
        ("http://[::1", "foreign_origin"),
        ("http://127.0.0.1]:9404", "foreign_origin"),
        ("http://127.0.0.1\u2100:9404", "foreign_origin"),
        ("", "foreign_origin"),
    ],
)
def test_only_our_own_pages_may_ask(origin: str, code: str | None) -> None:
    for request in (READ, CHANGE):
        asked = request._replace(origin=origin)
        assert refusal(loopback(), asked) == code
