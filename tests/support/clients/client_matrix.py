"""The table of clients in docs/reference: which the tests run, at which version, what they do.

Gathered from the tests themselves: a module that runs a client says so in a constant
`EXERCISES = {client: what it does}` (several clients with commas between them). Versions come from
what the tests install: go.mod, the lock file of npm, the script that fetches Kafka, the Python
environment. Versions that no file of ours fixes may differ from machine to machine: checking takes
those that the README has.

usage: python -m tests.support.clients.client_matrix --write | --check
"""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from config.docs import with_section
from tests.support.spark.spark_jars import CONNECTOR_VERSION

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "clients.md"
MARK = "clients under test"
CONSTANT = "EXERCISES"
GO_MODULES = {
    "franz-go": "github.com/twmb/franz-go",
    "sarama": "github.com/IBM/sarama",
    "kafka-go": "github.com/segmentio/kafka-go",
}
OF_KAFKA = {"kafka-clients", "Kafka's command-line tools", "Kafka Streams"}
LANGUAGES = {
    "aiokafka": "Python",
    "confluent-kafka": "Python (librdkafka)",
    "kafka-python": "Python",
    "franz-go": "Go",
    "sarama": "Go",
    "kafka-go": "Go",
    "kafkajs": "JavaScript",
    "kafka-clients": "Java",
    "Kafka Streams": "Java",
    "Kafka's command-line tools": "Java",
    "kcat": "C (librdkafka)",
    "Spark's Kafka connector": "Java",
    "OpenTelemetry Collector": "Go (sarama)",
    "Kaskade": "Python (librdkafka)",
}
FIXED_IN = {
    "OpenTelemetry Collector": (
        "tests/conformance/go_collector/go.mod",
        r"receiver/kafkametricsreceiver v(\S+)",
    ),
    "Kaskade": ("tests/conformance/test_monitoring_calls.py", r'^KASKADE = "(.+)"'),
}


def exercises() -> dict[str, list[str]]:
    """Uses of each client in the tests, by client, in the order of the files."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").glob("**/test_*.py")):
        for clients, what in _declared(path):
            for client in clients.split(", "):
                found[client].append(what)
    return found


def table(known: Mapping[str, str], *, fixed_only: bool) -> str:
    """Markdown; `known` are versions to take where none is found, or none is fixed."""
    head = "| client | language | version tested | what it does in the tests |\n|---|---|---|---|\n"
    rows = (
        f"| {client} | {LANGUAGES[client]} | {_version(client, known, fixed_only=fixed_only)} "
        f"| {'; '.join(what)} |\n"
        for client, what in sorted(exercises().items(), key=lambda item: item[0].lower())
    )
    return head + "".join(rows)


def current(*, fixed_only: bool) -> tuple[str, str]:
    """The page as it is, and as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    known = dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| ([\w.]+) \| ", text, re.MULTILINE))
    return text, with_section(text, MARK, table(known, fixed_only=fixed_only))


def _declared(path: Path) -> Iterator[tuple[str, str]]:
    text = path.read_text(encoding="utf-8")
    if f"\n{CONSTANT} = " in text:
        for statement in ast.parse(text).body:
            if isinstance(statement, ast.Assign) and _names_the_constant(statement):
                yield from ast.literal_eval(statement.value).items()


def _names_the_constant(statement: ast.Assign) -> bool:
    return any(isinstance(each, ast.Name) and each.id == CONSTANT for each in statement.targets)


def _version(client: str, known: Mapping[str, str], *, fixed_only: bool) -> str:
    fixed = _fixed_version(client)
    if fixed is not None:
        return fixed
    if fixed_only and client in known:
        return known[client]
    if client == "kcat" and shutil.which("kcat"):
        told = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=False)
        return _found(r"Version (\S+)", told.stdout)
    try:
        return version(client)
    except PackageNotFoundError:
        return known.get(client, "any")


def _fixed_version(client: str) -> str | None:
    """The version that a file of ours fixes."""
    if client in GO_MODULES:
        text = (ROOT / "tests/conformance/go/go.mod").read_text()
        return _found(rf"\t{re.escape(GO_MODULES[client])} v(\S+)", text)
    if client in OF_KAFKA:
        return _found(r'^VERSION = "(.+)"', (ROOT / "scripts/kafka").read_text())
    if client == "Spark's Kafka connector":
        return CONNECTOR_VERSION
    if client in FIXED_IN:
        path, pattern = FIXED_IN[client]
        return _found(pattern, (ROOT / path).read_text())
    if client == "kafkajs":
        lock = json.loads((ROOT / "tests/integration/kafkajs/package-lock.json").read_text())
        return str(lock["packages"]["node_modules/kafkajs"]["version"])
    return None


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match is not None, pattern
    return match[1]


def main() -> int:
    writes = sys.argv[1:] == ["--write"]
    text, wanted = current(fixed_only=not writes)
    if text == wanted:
        return 0
    if writes:
        PAGE.write_text(wanted, encoding="utf-8")
    outcome = "written" if writes else "out of date; scripts/docs writes it"
    print(f"docs/reference/clients.md, {MARK}: {outcome}")
    return 0 if writes else 1


if __name__ == "__main__":
    sys.exit(main())
