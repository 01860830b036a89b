"""The recorded answers of a real Kafka: which question gets which shape, and which Kafka said so.

In the file, answers that are equal are written once; a row holds the answers to one API, aim and
principal, by ranges of versions ("3-12").
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.authorization import scene
from tests.support.authorization.survey import Cell
from tests.support.authorization.told import Shape

Answers = Mapping[Cell, Shape]
PATH = Path(__file__).resolve().parents[2] / "golden" / "kafka_4_3_authorization.json"


def versions_of(answers: Iterable[Cell]) -> dict[str, list[int]]:
    """The versions of each API that a table has."""
    found: dict[str, set[int]] = {}
    for cell in answers:
        found.setdefault(cell.api, set()).add(cell.version)
    return {api: sorted(versions) for api, versions in found.items()}


def differences(recorded: Answers, told: Answers) -> list[str]:
    """A line for each question whose answers differ, or that only one of the two knows."""
    return [
        f"{cell}: recorded {recorded.get(cell)}, now {told.get(cell)}"
        for cell in sorted({*recorded, *told})
        if recorded.get(cell) != told.get(cell)
    ]


def save(path: Path, kafka: str, answers: Answers) -> None:
    """Writes the table of that version of Kafka."""
    texts = {json.dumps(shape, sort_keys=True): 0 for shape in answers.values()}
    numbers = {text: number for number, text in enumerate(sorted(texts))}
    rows: dict[tuple[str, str, str], dict[int, int]] = {}
    for cell, shape in answers.items():
        row = rows.setdefault((cell.api, cell.aim, cell.principal), {})
        row[cell.version] = numbers[json.dumps(shape, sort_keys=True)]
    lines = [json.dumps([*key, _ranges(row)]) for key, row in sorted(rows.items())]
    head = {
        "kafka": kafka,
        "authorizer": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "principals": scene.PRINCIPALS,
        "acls": [list(acl) for acl in scene.acls()],
    }
    parts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    parts += [f' "answers": [\n  {_joined(numbers)}]', f' "rows": [\n  {_joined(lines)}]']
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def load(path: Path = PATH) -> dict[Cell, Shape]:
    """The recorded answers."""
    table = json.loads(path.read_text())
    return dict(_cells(table["rows"], table["answers"]))


def head(path: Path = PATH) -> dict[str, Any]:
    """The Kafka that was asked, and its scene: `kafka`, `authorizer`, `principals`, `acls`."""
    table: dict[str, Any] = json.loads(path.read_text())
    return {key: value for key, value in table.items() if key not in {"answers", "rows"}}


def _cells(rows: list[list[Any]], answers: list[Shape]) -> Iterator[tuple[Cell, Shape]]:
    for api, aim, principal, ranges in rows:
        for text, number in ranges.items():
            first, _, last = text.partition("-")
            for version in range(int(first), int(last or first) + 1):
                yield Cell(api, aim, principal, version), answers[number]


def _ranges(row: Mapping[int, int]) -> dict[str, int]:
    """Answers by version, neighbours with the same answer as one."""
    runs: list[list[int]] = []
    for version, number in sorted(row.items()):
        if runs and runs[-1][1:] == [version - 1, number]:
            runs[-1][1] = version
        else:
            runs.append([version, version, number])
    return {f"{a}-{b}" if a < b else str(a): number for a, b, number in runs}


def _joined(lines: Iterable[str]) -> str:
    return ",\n  ".join(lines)
