"""Searches by all clocks in histories of a log in both tiers, against a full scan.

`HOROLOG_MODEL_SEARCHES` says how many histories (100 unless told); a failure tells its story.
"""

import os

import pytest

from tests.support.tier.searched_life import SearchedLife

HISTORIES = int(os.environ.get("HOROLOG_MODEL_SEARCHES", "100"))
PER_TEST = 50


@pytest.mark.parametrize("first", range(0, HISTORIES, PER_TEST))
def test_every_answer_is_that_of_a_full_scan_whatever_came_before(first: int) -> None:
    answers = 0
    for seed in range(first, min(first + PER_TEST, HISTORIES)):
        life = SearchedLife(seed)
        try:
            life.live()
        except Exception as error:
            raise AssertionError(f"seed {seed}: {' '.join(life.story)}") from error
        answers += life.answers
    assert answers > 1000
