"""Whole lives of a partition against a plain list of records; a failure tells its story.

`HOROLOG_MODEL_HISTORIES` says how many (2,000 unless told).
"""

import os

import pytest

from broker.runtime.event_log import journal
from protocol.records.compression import Codec
from tests.support.histories.log_author import Author
from tests.support.histories.log_history import LogHistory
from tests.support.histories.log_twins import NOW

HISTORIES = int(os.environ.get("HOROLOG_MODEL_HISTORIES", "2000"))
PER_TEST = 100


@pytest.mark.parametrize("first", range(0, HISTORIES, PER_TEST))
def test_the_log_is_what_the_list_is(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "threshold", 100)
    for seed in range(first, min(first + PER_TEST, HISTORIES)):
        author = Author(seed)
        try:
            author.live()
        except Exception as error:
            story = "\n".join(author.story)
            raise AssertionError(f"seed {seed}, {author.history.settings}\n{story}") from error


def test_batches_of_which_records_were_set_aside_over_a_kill() -> None:
    history = LogHistory(horolog_timestamp_policy="quarantine", message_timestamp_after_max_ms=0)
    for times in ((NOW + 1, NOW), (NOW + 1,), (NOW, NOW), (NOW + 1, NOW + 1)):
        history.append(times)
    history.restart()
    history.append((NOW + 1,))
    history.append((NOW,))
    history.kill()
    history.check_all()


def test_the_largest_time_is_a_record_s_even_where_a_batch_has_none() -> None:
    history = LogHistory(
        horolog_timestamp_policy="quarantine", message_timestamp_after_max_ms=0, segment_bytes=170
    )
    history.append((NOW,), size=80)
    history.append((NOW,), size=0)
    history.wait(5000)
    history.append((NOW + 10**9,), codec=Codec.GZIP)
    assert history.model.end == 3
    assert len(history.log.snapshot.segments) == 2
    history.check_all()
