"""The search through orders of threads finds the races that were, and none in what is."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from storage.files.layout import TXN_INDEX
from storage.index.txn_index import TxnIndex
from storage.log.log import Log
from storage.segment import index_rebuild
from storage.segment import trusted_indexes as index_trust
from storage.segment.segment import Indexes, IndexRules, Segment
from storage.segment.trusted_indexes import TrustedIndexes
from tests.support.threads import interleaved_life
from tests.support.threads.interleaved_life import play
from tests.support.threads.interleaved_world import WATCHED

TRANSACTION_FILES = ("/storage/segment/segment.py", __file__)
MOST_LIVES = 600
"""Of which one must show a race: each shows it in 3 of 100 or more, whatever the lines are."""
CLEAN_LIVES = 30


@contextmanager
def shown_at_once() -> Iterator[None]:
    """The loop publishes what became durable while an append runs on a lane."""

    def mark_durable(self: Log, offset: int) -> None:
        self.durability.reached(offset)
        self.durability.show()
        self._publish()
        self._settle()

    with patch.object(Log, "mark_durable", mark_durable):
        yield


@contextmanager
def aborted_made_twice() -> Iterator[None]:
    """Two threads make the index of aborted transactions; the second one takes its place."""

    def aborted(self: Segment) -> TxnIndex:
        if self._aborted is None:
            made = TxnIndex(self.files.fs, self.path_of(TXN_INDEX), self.base_offset)
            _takes_long()
            self._aborted = made
        return self._aborted

    def rows(self: TxnIndex) -> Any:
        if self._rows is None:
            read = self._read()
            _takes_long()
            self._rows = read
        return self._rows

    with (
        patch.object(Segment, "aborted", property(aborted)),
        patch.object(TxnIndex, "rows", property(rows)),
        patch.object(interleaved_life, "WATCHED", TRANSACTION_FILES),
        patch.object(interleaved_life, "WEIGHTS", ((0, 0, 6, 8, 12, 0, 1, 0, 0),)),
    ):
        yield


@contextmanager
def rebuilt_under_a_writer() -> Iterator[None]:
    """A rebuild on a lane takes the indexes away from the first append after a start."""

    def indexes_of(self: TrustedIndexes, segment: Segment, rules: IndexRules) -> Indexes:
        indexes = segment.indexes or segment.make_indexes(rules)
        segment.indexes = indexes
        return indexes

    with ExitStack() as stack:
        for module in (index_rebuild, index_trust):
            stack.enter_context(patch.object(module, "has_writer", lambda segment: False))
            stack.enter_context(patch.object(module, "may_replace", lambda segment, limit: True))
        stack.enter_context(patch.object(TrustedIndexes, "_indexes_of", indexes_of))
        yield


@pytest.mark.parametrize("race", [shown_at_once, aborted_made_twice, rebuilt_under_a_writer])
def test_a_race_is_found(race: Callable[[], Any]) -> None:
    with race():
        assert any(map(_is_broken, range(MOST_LIVES))), "no order of threads shows it"


def test_no_order_breaks_a_promise() -> None:
    assert [seed for seed in range(CLEAN_LIVES) if _is_broken(seed)] == []


def test_a_seed_is_an_order() -> None:
    assert [play(seed) for seed in range(5)] == [play(seed) for seed in range(5)]


def _takes_long() -> None:
    """Many lines at which another thread may go on: a window as wide as on a slow disk."""
    for _ in range(20):
        pass


def _is_broken(seed: int) -> bool:
    try:
        play(seed)
    except Exception:  # noqa: BLE001 - whatever it is
        return True
    return False


def test_the_files_in_which_threads_change_places_are_there() -> None:
    root = Path(__file__).resolve().parents[2]
    assert [name for name in WATCHED if not Path(f"{root}{name}").is_file()] == []
