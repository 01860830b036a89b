"""Who may ask the admin API what, by listener, name, origin and token."""

import pytest

from broker.http.port.access import AccessControl
from broker.http.port.messages import ApiError, Request

TOKEN = "0123456789abcdef"
READ = Request("GET", "/api/topics", "", "127.0.0.1:9404")
CHANGE = READ._replace(method="POST", path="/api/clock/confirm")
WITH_TOKEN = f"Bearer {TOKEN}"


def refusal(gate: AccessControl, request: Request) -> str | None:
    """The code of the refusal, None when the request is let in."""
    try:
        gate.check(request)
    except ApiError as error:
        return error.code
    return None


def loopback(*, token: str | None = TOKEN, is_test: bool = False, names: str = "") -> AccessControl:
    return AccessControl("127.0.0.1", names.split(), lambda: token, is_test=is_test)


def everywhere(
    *, token: str | None = TOKEN, is_test: bool = False, names: str = ""
) -> AccessControl:
    return AccessControl("0.0.0.0", names.split(), lambda: token, is_test=is_test)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_everybody_on_the_machine_may_read(host: str) -> None:
    assert refusal(AccessControl(host, (), lambda: None, is_test=False), READ) is None


def test_a_change_needs_the_token_on_loopback_too() -> None:
    assert refusal(loopback(), CHANGE) == "token"
    assert refusal(loopback(token=None), CHANGE) == "no_token_set"
    assert refusal(loopback(), CHANGE._replace(authorization=WITH_TOKEN)) is None


def test_elsewhere_reading_needs_it_as_well() -> None:
    assert refusal(everywhere(), READ) == "token"
    assert refusal(everywhere(token=None), READ) == "no_token_set"
    assert refusal(everywhere(), READ._replace(authorization=WITH_TOKEN)) is None
    assert refusal(everywhere(), READ._replace(method="HEAD")) == "token"


def test_a_held_clock_opens_changes_on_loopback_only() -> None:
    assert refusal(loopback(is_test=True, token=None), CHANGE) is None
    assert refusal(everywhere(is_test=True), CHANGE) == "token"


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}",
     TOKEN, "Bearer \u00e9", f"Bearer {TOKEN} {TOKEN}"],
)  # fmt: skip
def test_what_is_not_the_token_is_refused_and_says_how(authorization: str) -> None:
    with pytest.raises(ApiError) as refused:
        loopback().check(CHANGE._replace(authorization=authorization))
    assert refused.value.status == 401
    assert refused.value.headers["WWW-Authenticate"].startswith("Bearer")
    assert TOKEN not in refused.value.message


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
    asked = READ._replace(authorization=WITH_TOKEN)
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
        ("", "foreign_origin"),
    ],
)
def test_only_our_own_pages_may_ask(origin: str, code: str | None) -> None:
    for request in (READ, CHANGE):
        asked = request._replace(origin=origin)
        assert refusal(loopback(is_test=True), asked) == code
