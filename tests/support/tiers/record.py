"""Records what a real Kafka says to the attempts: `python -m tests.support.tiers.record`.

Needs Java 17 and Maven, which fetches Kafka, and about a minute. It rewrites the table in
tests/golden.
"""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.authorization.record import kafka_version
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import start_kafka
from tests.support.kafka.tiered_kafka import tier_settings
from tests.support.tiers import table
from tests.support.tiers.attempts import (
    SCENES,
    changed_on_broker,
    described,
    description_requests,
    left_on_broker,
    request_of,
    told,
)
from tests.support.tiers.table import Row, Scene

WITHIN_SECONDS = 30


def asked_of_kafka(directory: Path) -> dict[str, Scene]:
    """Every answer of a new Kafka for each scene."""
    settings = {"without tier": {}, "with tier": tier_settings(directory / "tier")}
    found = {}
    for name in SCENES:
        node = start_kafka(directory / name.replace(" ", "-"), settings[name])
        try:
            host, port = node.bootstrap.split(":")
            with WireClient(host, int(port)) as client:
                answers = [told(each, client.call(*request_of(each))) for each in SCENES[name]]
                left = left_on_broker(SCENES[name], answers)
                shown = {
                    what: _settled(client, left, *asked)
                    for what, asked in description_requests().items()
                }
        finally:
            node.kill()
        found[name] = Scene(answers, shown)
    return found


def _settled(client: WireClient, left: Mapping[str, str], request: Any, version: int) -> list[Row]:
    """The settings once the last change has reached the broker.

    Values are those in force, and the broker's changed keys are those that the attempts left:
    Kafka answers a change before the broker has it, so a synonym may outlive its key for a moment.
    """
    deadline = time.monotonic() + WITHIN_SECONDS
    while True:
        rows = described(client.call(request, version))
        if _in_force(rows) and changed_on_broker(rows).items() <= left.items():
            return rows
        assert time.monotonic() < deadline, rows
        time.sleep(0.1)


def _in_force(rows: list[Row]) -> bool:
    return all(value == synonyms[0][1] for _, value, *_, synonyms in rows if synonyms)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        scenes = asked_of_kafka(Path(scratch))
    table.save(table.PATH, kafka_version(), scenes)
    print(f"{table.PATH}: {sum(len(each.answers) for each in scenes.values())} answers")


if __name__ == "__main__":
    main()
