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
from protocol.apis.list_config_resources import ListConfigResourcesRequest
from protocol.apis.produce import ProduceRequest
from tests.support.authorization.record import kafka_version
from tests.support.clients.wire import WireClient
from tests.support.kafka.kafka_oracle import start_kafka
from tests.support.questions import table
from tests.support.questions.question import Question, Seen, plain
from tests.support.questions.scenes import FILES, SCENES

SETTLED_SECONDS = 0.5
MOST_TRIES = 60
SHOWN_LATER = (DescribeConfigsRequest, ListConfigResourcesRequest)
NOT_YET = "'error_code': 6,"
"""NOT_LEADER_OR_FOLLOWER, to a write."""
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
    """Asks for settings until they stay: Kafka answers a change before it shows it.

    So it does with a new topic: writes are refused until its leader has heard of it.
    """
    last = None
    for _ in range(MOST_TRIES):
        request = question.make(seen)
        told = plain(question, client.call(request, question.version), seen)
        is_late = isinstance(request, ProduceRequest) and NOT_YET in str(told)
        if not is_late and (not isinstance(request, SHOWN_LATER) or told == last):
            return told
        last = told
        time.sleep(SETTLED_SECONDS)
    return last


def main() -> None:
    wanted = sys.argv[1:] or list(SCENES)
    with tempfile.TemporaryDirectory() as scratch:
        answers = asked_of_kafka(Path(scratch), wanted)
    kept = {each: table.load(each) for each in SCENES if each not in wanted}
    table.save(table.PATH, kafka_version(), {each: {**kept, **answers}[each] for each in SCENES})
    print(f"{table.PATH}: {sum(map(len, answers.values()))} answers")


if __name__ == "__main__":
    main()
