"""The quick proofs visit a first point with every test run; scripts/prove visits the rest."""

from typing import NamedTuple

import pytest

from tests.prove import Work, shown
from tests.prove.__main__ import outcome_of

ONE_POINT = Work(points=1, processes=1)


@pytest.mark.parametrize("name", ["bits", "hostile", "interleavings"])
def test_the_first_point_of_a_proof_breaks_no_promise(name: str) -> None:
    outcome = outcome_of(name, ONE_POINT)
    assert outcome.findings == ()
    assert outcome.count == 1 or outcome.skipped


def test_a_proof_that_breaks_off_is_a_finding_and_stops_no_other() -> None:
    outcome = outcome_of("no_such_proof", ONE_POINT)
    assert "ModuleNotFoundError" in outcome.findings[0]


class Part(NamedTuple):
    """The result of a part of a search."""

    findings: tuple[str, ...]


def test_a_finding_is_shown_before_the_next_part_is_searched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parts = shown(iter([Part(()), Part(("a record was lost",)), Part(())]))
    next(parts)
    assert capsys.readouterr().err == ""
    next(parts)
    assert capsys.readouterr().err == "found: a record was lost\n"
