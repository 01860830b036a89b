"""What a start makes of the topics file and the directories on the disk."""

from dataclasses import dataclass
from uuid import UUID

import pytest

from broker.topics.adoption import TopicIdConflictError, doomed_logs, reconciled
from storage.directory.topics_file import CatalogState, TopicEntry

ONE, TWO, FRESH = UUID(int=1), UUID(int=2), UUID(int=99)


@dataclass
class Directory:
    """A log on the disk."""

    topic_id: UUID | None


def fresh() -> UUID:
    return FRESH


def test_an_empty_directory_has_no_topics() -> None:
    assert reconciled(None, {}, fresh) == CatalogState()


def test_a_foreign_directory_is_adopted_with_its_ids() -> None:
    found = {"a": {0: Directory(ONE), 1: Directory(ONE)}, "b": {0: Directory(TWO)}}
    assert reconciled(None, found, fresh).topics == {
        "a": TopicEntry(ONE, 2),
        "b": TopicEntry(TWO, 1),
    }


def test_an_old_directory_without_metadata_gets_an_id() -> None:
    assert reconciled(None, {"a": {0: Directory(None)}}, fresh).topics["a"].topic_id == FRESH


def test_partitions_that_live_elsewhere_are_counted() -> None:
    """Of a Kafka cluster one broker has only some partitions."""
    assert reconciled(None, {"a": {5: Directory(ONE)}}, fresh).topics["a"].partition_count == 6


def test_the_file_decides_and_its_missing_partitions_stay_counted() -> None:
    stored = CatalogState({"a": TopicEntry(ONE, 3), "gone": TopicEntry(TWO, 2)})
    state = reconciled(stored, {"a": {0: Directory(ONE)}}, fresh)
    assert state.topics == stored.topics


def test_a_directory_beyond_the_count_is_not_forgotten() -> None:
    stored = CatalogState({"a": TopicEntry(ONE, 1)})
    assert reconciled(stored, {"a": {2: Directory(ONE)}}, fresh).topics["a"].partition_count == 3


def test_directories_of_deleted_topics_are_doomed_and_new_ones_of_the_name_are_not() -> None:
    stored = CatalogState({}, frozenset({ONE}))
    old, new = Directory(ONE), Directory(TWO)
    assert doomed_logs(stored, {"a": {0: old, 1: new}}) == [old]
    assert doomed_logs(None, {"a": {0: old}}) == []


def test_ids_of_finished_deletions_are_dropped() -> None:
    assert reconciled(CatalogState({}, frozenset({ONE})), {}, fresh).deleted == frozenset()


@pytest.mark.parametrize("stored", [None, CatalogState({"a": TopicEntry(ONE, 1)})])
def test_two_histories_under_one_name_are_refused(stored: CatalogState | None) -> None:
    found = {"a": {0: Directory(ONE), 1: Directory(TWO)}}
    with pytest.raises(TopicIdConflictError, match="a-1: it carries topic id"):
        reconciled(stored, found, fresh)
