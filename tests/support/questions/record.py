"""Records what a real Kafka answers: `python -m tests.support.questions.record [SCENE ...]`.

Needs Java 17 and Maven, which fetches Kafka, and half a minute for each scene. It rewrites the
table in tests/golden.
"""

import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from protocol.apis.describe_configs import DescribeConfigsRequest
from tests.support.authorization.record import kafka_version
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import start_kafka
from tests.support.questions import table
from tests.support.questions.question import Question, Seen, plain
from tests.support.questions.scenes import FILES, SCENES

SETTLED_SECONDS = 0.5
SETTINGS = {"auto.create.topics.enable": "true"}


def asked_of_kafka(directory: Path, names: Collection[str] = tuple(SCENES)) -> dict[str, list[Any]]:
    """Every answer of a new Kafka for each scene."""
    found = {}
    for name in names:
        node = start_kafka(directory / name.replace(" ", "-"), {**SETTINGS, **FILES.get(name, {})})
        try:
            host, port = node.bootstrap.split(":")
            with WireClient(host, int(port)) as client:
                found[name] = _answers(client, SCENES[name])
        finally:
            node.kill()
    return found


def _answers(client: WireClient, questions: Sequence[Question]) -> list[Any]:
    seen = Seen()
    return [_answer(client, each, seen) for each in questions]


def _answer(client: WireClient, question: Question, seen: Seen) -> Any:
    """Asks for settings until they stay: Kafka answers a change before it shows it."""
    last = None
    while True:
        request = question.make(seen)
        told = plain(question, client.call(request, question.version), seen)
        if not isinstance(request, DescribeConfigsRequest) or told == last:
            return told
        last = told
        time.sleep(SETTLED_SECONDS)


def main() -> None:
    wanted = sys.argv[1:] or list(SCENES)
    with tempfile.TemporaryDirectory() as scratch:
        answers = asked_of_kafka(Path(scratch), wanted)
    kept = {each: table.load(each) for each in SCENES if each not in wanted}
    table.save(table.PATH, kafka_version(), {each: {**kept, **answers}[each] for each in SCENES})
    print(f"{table.PATH}: {sum(map(len, answers.values()))} answers")


if __name__ == "__main__":
    main()
