"""The recorded answers of authorization, held true: a real Kafka is asked everything once more."""

from pathlib import Path

import pytest

from broker.daemon.routes import served
from tests.support.authorization import table
from tests.support.authorization.asked import UNASKED
from tests.support.authorization.kafka_side import GuardedKafka
from tests.support.authorization.record import kafka_version
from tests.support.authorization.survey import Survey
from tests.support.kafka.kafka_oracle import available


@pytest.mark.timeout(400)
@pytest.mark.skipif(not available(), reason="needs Java and Maven")
def test_kafka_answers_as_recorded(tmp_path: Path) -> None:
    """All of the table, and nothing that both brokers serve is missing from it."""
    recorded = table.load()
    ours = {each.api.name for each in served()} - UNASKED.keys()
    known = {cell: shape for cell, shape in recorded.items() if cell.api in ours}
    kafka = GuardedKafka(tmp_path / "data")
    survey = Survey(kafka.connect)
    try:
        survey.make_acls()
        survey.prepare()
        survey.make_tokens()
        theirs = survey.versions()
        told = dict(survey.answers(theirs))
    finally:
        survey.close()
        kafka.stop()
    assert table.head()["kafka"] == kafka_version()
    assert table.differences(known, told) == []
    both = {name: [*versions] for name, versions in theirs.items() if name in ours}
    held = table.versions_of(recorded)
    assert {name: versions for name, versions in both.items() if held.get(name) != versions} == {}
