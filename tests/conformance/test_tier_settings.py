"""The recorded answers about the keys of the tier, held true: a real Kafka is asked once more."""

from pathlib import Path

import pytest

from tests.support.authorization.record import kafka_version
from tests.support.kafka.kafka_oracle import available
from tests.support.tiers import table
from tests.support.tiers.attempts import SCENES
from tests.support.tiers.record import asked_of_kafka

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]


def test_kafka_answers_as_recorded(tmp_path: Path) -> None:
    recorded, told = table.load(), asked_of_kafka(tmp_path)
    assert table.kafka_version() == kafka_version()
    for name, attempts in SCENES.items():
        pairs = zip(attempts, recorded[name].answers, told[name].answers, strict=True)
        assert [each for each in pairs if each[1] != each[2]] == []
        assert told[name].shown == recorded[name].shown
