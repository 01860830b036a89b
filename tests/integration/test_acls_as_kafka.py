"""Each request of each principal is answered as Kafka 4.3 with StandardAuthorizer answers it.

The same codes, the same names, the same authorized operations; the requests, the entries and
Kafka's answers are those of the recorded table. Texts are our own.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_answers_as_kafka import DIFFERENT
from tests.integration.test_sasl import add_user
from tests.support.authorization import scene, table
from tests.support.authorization.logins import by_password, password_of
from tests.support.authorization.survey import Cell, Survey
from tests.support.authorization.told import Shape
from tests.support.worlds.broker_process import start_broker

SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "auto.create.topics.enable": "false",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{scene.SUPER}",
    "delegation.token.secret.key": "a secret of tests",
}
LEAST_CELLS = 10_000
NAMED = "DescribeUserScramCredentials"
"""A refusal names the users that were asked for; Kafka leaves the names empty."""


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with the users and the entries of the scene."""
    data: Path = tmp_path_factory.mktemp("scene") / "data"
    for user in scene.PRINCIPALS:
        add_user(data, user, password_of(user))
    with start_broker(data, SETTINGS) as node:
        yield node.bootstrap


def test_each_principal_is_answered_as_by_kafka(bootstrap: str) -> None:
    recorded = table.load()
    told = answers(int(bootstrap.rpartition(":")[2]), table.versions_of(recorded))
    both = recorded.keys() & told.keys()
    assert len(both) > LEAST_CELLS
    wrong = [
        f"{cell}: Kafka {recorded[cell]}, ours {told[cell]}"
        for cell in sorted(both)
        if without_texts(recorded[cell]) != without_texts(told[cell])
        and (cell.api, cell.aim) not in DIFFERENT
        and cell.api != NAMED
    ]
    assert wrong == []


def answers(port: int, wanted: dict[str, list[int]]) -> dict[Cell, Shape]:
    survey = Survey(by_password(port), list(scene.PRINCIPALS))
    try:
        survey.make_acls()
        survey.prepare()
        survey.make_tokens()
        ours = survey.versions()
        both = {
            api: [version for version in versions if version in ours.get(api, ())]
            for api, versions in wanted.items()
        }
        return dict(survey.answers(both))
    finally:
        survey.close()


def without_texts(shape: Any) -> Any:
    """The shape without messages, in one order."""
    if isinstance(shape, dict):
        return {
            name: without_texts(each) for name, each in shape.items() if name != "error_message"
        }
    if isinstance(shape, list):
        return sorted(map(without_texts, shape), key=lambda each: json.dumps(each, sort_keys=True))
    return shape
