"""What an earlier release wrote, stopped or killed, with its settings file, is served unchanged."""

from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from tests.support.histories.earlier_release import (
    READ_AT,
    STATES,
    expected,
    joined,
    served_now,
    started,
    transact,
    unpacked,
    written,
)
from tests.support.worlds.broker_process import HOROLOG


@pytest.mark.parametrize("state", STATES)
def test_clients_are_told_what_the_earlier_release_told_them(state: str, tmp_path: Path) -> None:
    with started(HOROLOG, unpacked(state, tmp_path), READ_AT) as broker:
        found, wanted = served_now(broker), expected(state)
        assert found.keys() == wanted.keys()
        for subject, answer in wanted.items():
            assert found[subject] == answer, subject
        assert broker.stop() == 0
    assert "level=error" not in broker.log.read_text()


@pytest.mark.parametrize("state", STATES)
def test_its_producers_groups_and_transactions_go_on(state: str, tmp_path: Path) -> None:
    with started(HOROLOG, unpacked(state, tmp_path), READ_AT) as broker:
        served_now(broker)  # a transaction that a kill left open has timed out
        written(broker.bootstrap, "plain", 10, first=900)
        for transactional_id in ("tx-0", "tx-open"):
            transact(broker.bootstrap, transactional_id, 4, commit=True)
        consumer = joined(broker.bootstrap, "classic", "plain")
        (place,) = consumer.committed([TopicPartition("plain", 0)], timeout=30)
        assert place.offset == 42
        consumer.commit(offsets=[TopicPartition("plain", 0, 43)], asynchronous=False)
        consumer.close()
        assert broker.stop() == 0
    assert "level=error" not in broker.log.read_text()
