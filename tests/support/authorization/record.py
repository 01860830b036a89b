"""Records what a real Kafka answers to everybody: `python -m tests.support.authorization.record`.

Needs Java 17 and Maven, which fetches Kafka, and about a minute. It rewrites the table in
tests/golden.
"""

import importlib.util
import tempfile
from importlib.machinery import SourceFileLoader
from pathlib import Path

from tests.support.authorization import table
from tests.support.authorization.kafka_side import GuardedKafka
from tests.support.authorization.survey import Cell, Survey
from tests.support.authorization.told import Shape
from tests.support.kafka.kafka_oracle import SCRIPT


def kafka_version() -> str:
    """The version that scripts/kafka starts."""
    loader = SourceFileLoader("kafka_script", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    script = importlib.util.module_from_spec(spec)
    loader.exec_module(script)
    return str(script.VERSION)


def asked_of_kafka(data_dir: Path) -> dict[Cell, Shape]:
    """Every answer of a new Kafka in that directory."""
    kafka = GuardedKafka(data_dir)
    survey = Survey(kafka.connect)
    try:
        survey.make_acls()
        survey.prepare()
        survey.make_tokens()
        return dict(survey.answers(survey.versions()))
    finally:
        survey.close()
        kafka.stop()


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        answers = asked_of_kafka(Path(scratch) / "data")
    table.save(table.PATH, kafka_version(), answers)
    shapes = {repr(shape) for shape in answers.values()}
    print(f"{table.PATH}: {len(answers)} questions, {len(shapes)} different answers")


if __name__ == "__main__":
    main()
