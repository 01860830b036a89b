"""Histories of a log that goes on in a store, against its twin without one and a plain list.

`HOROLOG_MODEL_TIERS` says how many (100 unless told); a failure tells its story.
"""

import os

import pytest

from tests.support.tier.tier_twins import TierTwins

HISTORIES = int(os.environ.get("HOROLOG_MODEL_TIERS", "100"))
PER_TEST = 25


@pytest.mark.parametrize("first", range(0, HISTORIES, PER_TEST))
def test_a_log_in_both_tiers_answers_as_its_twin_in_one(first: int) -> None:
    answers = errors = cleaned_away = 0
    for seed in range(first, min(first + PER_TEST, HISTORIES)):
        twins = TierTwins(seed)
        try:
            twins.live()
        except Exception as error:
            raise AssertionError(f"seed {seed}\n" + "\n".join(twins.story)) from error
        answers, errors = answers + twins.answers, errors + twins.errors
        cleaned_away += twins.cleaned_away
    assert answers > 1000
    assert errors, "the store was never at fault"
    assert cleaned_away, "compaction never came to the store"
