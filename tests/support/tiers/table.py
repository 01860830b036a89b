"""Answers of a real Kafka to the attempts: recorded in tests/golden, one line for each."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.tiers.attempts import SCENES

PATH = Path(__file__).resolve().parents[2] / "golden" / "kafka_4_3_tier_settings.json"
Row = list[Any]


class Scene(NamedTuple):
    """The answers of one broker: of each attempt the code and the text, then what is shown."""

    answers: Sequence[Row]
    shown: Mapping[str, Sequence[Row]]


def save(path: Path, kafka: str, scenes: Mapping[str, Scene]) -> None:
    """Writes the answers of that version of Kafka."""
    parts = [f' "kafka": {json.dumps(kafka)}']
    for name, scene in scenes.items():
        asked = zip(SCENES[name], scene.answers, strict=True)
        rows = [[each.call, each.name, each.settings, *answer] for each, answer in asked]
        parts.append(f" {json.dumps(name)}: [\n  {_lines(rows)}]")
        for what, keys in scene.shown.items():
            parts.append(f" {json.dumps(f'{name}: {what}')}: [\n  {_lines(keys)}]")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def load(path: Path = PATH) -> dict[str, Scene]:
    """The recorded answers; AssertionError when they are those to other attempts."""
    table = json.loads(path.read_text())
    found = {}
    for name, attempts in SCENES.items():
        rows = table[name]
        asked = [[each.call, each.name, dict(each.settings)] for each in attempts]
        assert [row[:3] for row in rows] == asked, f"record them again: {__package__}.record"
        shown = {what: table[f"{name}: {what}"] for what in ("topic", "broker")}
        found[name] = Scene([row[3:] for row in rows], shown)
    return found


def kafka_version(path: Path = PATH) -> str:
    """The Kafka that was asked."""
    return str(json.loads(path.read_text())["kafka"])


def _lines(rows: Sequence[Row]) -> str:
    return ",\n  ".join(json.dumps(row) for row in rows)
