"""The quick proofs visit a first point with every test run; scripts/prove visits the rest."""

import pytest

from tests.prove import Work
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
