"""The keys of the tier are taken, refused and shown as by a real Kafka, attempt by attempt.

With the same codes, and for topics with the same texts: tools and people know them.
"""

import pytest

from tests.support.tiers import table
from tests.support.tiers.attempts import (
    SCENES,
    described,
    description_requests,
    request_of,
    told,
)
from tests.support.worlds.handler_world import World

SETTINGS = {
    "without tier": {},
    "with tier": {
        "remote_log_storage_system_enable": "true",
        "horolog_tier_url": "s3://logs/a",
    },
}


@pytest.mark.parametrize("name", SCENES)
async def test_each_attempt_ends_as_with_kafka(name: str) -> None:
    world, recorded = World(**SETTINGS[name]), table.load()[name]
    different = []
    for attempt, (code, text) in zip(SCENES[name], recorded.answers, strict=True):
        request, version = request_of(attempt)
        ours = told(attempt, await world.call(request, version))
        expected = [code, ours[1] if attempt.own_words else text]
        if ours != expected:
            different.append((attempt, "Kafka", [code, text], "ours", ours))
    assert different == []
    for what, (request, version) in description_requests().items():
        assert described(await world.call(request, version)) == recorded.shown[what], what


def test_refusals_of_both_kinds_are_recorded() -> None:
    recorded = table.load()
    codes = {code for scene in recorded.values() for code, _ in scene.answers}
    assert codes == {0, 40, 42}
