"""The recorded answers to raw requests, held true: a real Kafka is asked once more."""

from pathlib import Path

import pytest

from tests.support.authorization.record import kafka_version
from tests.support.kafka.kafka_oracle import available
from tests.support.questions import table
from tests.support.questions.record import asked_of_kafka
from tests.support.questions.scenes import SCENES

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]


@pytest.mark.parametrize("name", SCENES)
def test_kafka_answers_as_recorded(name: str, tmp_path: Path) -> None:
    assert table.kafka_version() == kafka_version()
    recorded, told = table.load(name), asked_of_kafka(tmp_path, [name])[name]
    asked = [each.what for each in SCENES[name]]
    pairs = zip(asked, recorded, told, strict=True)
    assert [each for each in pairs if each[1] != each[2]] == []
