"""Which failures get a second look, and what it takes to pass then."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.again import MOST_MODULES, TIMES, failed_tests, look_again, refusal

WAITS = "tests/integration/fleet/test_groups.py::test_x"


@pytest.mark.parametrize(
    ("failed", "why_not"),
    [
        ([WAITS], None),
        ([f"tests/conformance/test_{each}.py::test_x" for each in range(MOST_MODULES)], None),
        ([f"tests/conformance/test_{each}.py::test_x" for each in range(MOST_MODULES + 1)], "4"),
        ([WAITS, "tests/unit/broker/test_x.py::test_y"], "waits for no other process"),
        (["tests/model/test_fleet_model.py::test_y"], "waits for no other process"),
        ([], "no test is known"),
    ],
)
def test_few_tests_that_wait_for_others_are_run_again(
    failed: list[str], why_not: str | None
) -> None:
    found = refusal(failed)
    assert (found is None) if why_not is None else (why_not in (found or ""))


@pytest.mark.parametrize(
    ("outcomes", "passes"), [([True] * TIMES, True), ([True, False], False), ([False], False)]
)
def test_all_runs_must_pass(
    outcomes: list[bool], *, passes: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    left = iter(outcomes)

    def run(failed: Sequence[str]) -> bool:
        assert failed == [WAITS]
        return next(left)

    assert look_again([WAITS], run) is passes
    assert (f"UNSTEADY {WAITS}" in capsys.readouterr().out) is passes
    assert next(left, None) is None


def test_tests_in_our_own_process_are_not_run() -> None:
    def run(_: Sequence[str]) -> bool:
        raise AssertionError

    assert not look_again(["tests/unit/test_x.py::test_y"], run)


def test_what_failed_is_read_from_the_cache(tmp_path: Path) -> None:
    cache = tmp_path / "lastfailed"
    assert failed_tests(cache) == []
    cache.write_text(f'{{"{WAITS}": true}}')
    assert failed_tests(cache) == [WAITS]
