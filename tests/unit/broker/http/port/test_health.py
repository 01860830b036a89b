"""Liveness and readiness say why not, list their checks, and let one be left out."""

import pytest

from broker.http.port.health import Check, judge
from broker.http.port.open_pages import Pages

CHECKS = [Check("serving", lambda: None), Check("storage", lambda: "an fsync failed")]


def pages() -> Pages:
    return Pages([Check("ping", lambda: None)], CHECKS)


def test_a_failed_check_gives_503_and_its_reason() -> None:
    health = judge("readyz", CHECKS)
    assert health.status == 503
    assert health.text == (
        "[+]serving ok\n[-]storage failed: an fsync failed\nreadyz check failed\n"
    )


def test_when_all_is_well_the_answer_is_short_unless_asked() -> None:
    assert judge("readyz", CHECKS[:1]).text == "ok\n"
    assert judge("readyz", CHECKS[:1], verbose=True).text == "[+]serving ok\nreadyz check passed\n"


def test_an_excluded_check_does_not_count() -> None:
    health = judge("readyz", CHECKS, ["storage", "nonsense"], verbose=True)
    assert health.status == 200
    assert "[+]storage excluded: ok\n" in health.text
    assert "no such check: nonsense" in health.text


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("/livez", "", 200),
        ("/readyz", "", 503),
        ("/readyz", "exclude=storage", 200),
        ("/readyz", "verbose&exclude=storage&exclude=x", 200),
        ("/metrics/others", "", 404),
        ("/", "", 200),
        ("/etc/passwd", "", 404),
    ],
)
def test_paths(path: str, query: str, status: int) -> None:
    assert pages().answer(path, query)[0] == status
