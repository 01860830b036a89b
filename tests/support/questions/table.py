"""Answers of a real Kafka to the questions: recorded in tests/golden, a line for each."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.questions.scenes import SCENES

PATH = Path(__file__).resolve().parents[2] / "golden" / "kafka_4_3_answers.json"


def save(path: Path, kafka: str, scenes: Mapping[str, Sequence[Any]]) -> None:
    """Writes the answers of that version of Kafka."""
    parts = [f' "kafka": {json.dumps(kafka)}']
    for name, answers in scenes.items():
        asked = zip(SCENES[name], answers, strict=True)
        rows = ",\n  ".join(json.dumps([each.what, answer]) for each, answer in asked)
        parts.append(f" {json.dumps(name)}: [\n  {rows}]")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def load(name: str, path: Path = PATH) -> list[Any]:
    """The recorded answers of a scene; AssertionError when they are those to other questions."""
    rows = json.loads(path.read_text())[name]
    asked = [each.what for each in SCENES[name]]
    assert [row[0] for row in rows] == asked, f"record them again: {__package__}.record"
    return [row[1] for row in rows]


def kafka_version(path: Path = PATH) -> str:
    """The Kafka that was asked."""
    return str(json.loads(path.read_text())["kafka"])
