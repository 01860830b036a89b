"""The recorded answers of a real Kafka to raw requests are ours, too, question by question."""

from typing import Any

import pytest

from tests.support.questions import table
from tests.support.questions.question import Seen, plain
from tests.support.questions.scenes import FILES, SCENES
from tests.support.worlds.handler_world import World


@pytest.mark.parametrize("name", SCENES)
async def test_each_question_is_answered_as_by_kafka(name: str) -> None:
    file = {key.replace(".", "_"): value for key, value in FILES.get(name, {}).items()}
    world, seen = World(auto_create_topics_enable="true", **file), Seen()
    different: list[Any] = []
    for question, expected in zip(SCENES[name], table.load(name), strict=True):
        ours = plain(question, await world.call(question.make(seen), question.version), seen)
        if (ours != expected) != bool(question.differs):
            different.append((question.what, "Kafka", expected, "ours", ours))
    assert different == []


def test_each_deviation_says_why() -> None:
    reasons = {each.differs for scene in SCENES.values() for each in scene if each.differs}
    assert all(len(reason.split()) > 4 for reason in reasons)
