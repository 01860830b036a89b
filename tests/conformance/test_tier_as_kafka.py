"""The same topics in the tier of a real Kafka 4.3 (its LocalTieredStorage) and in ours.

Small segments, many of them only in the tier: rising times, disordered and dirty ones, segments
without any, packed batches, transactions. Both are asked the same: fetches of each offset and
beside, by both isolation levels and several limits, ListOffsets by -1 to -7 and by each time; then
records are deleted, retention is set, copying and the tier are ended, and both are asked again.
`compare.DELIBERATE` names what may differ, and `docs/differences.md` says why.

HOROLOG_TIER_SEED is the seed of the times (a number, 1).
"""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.histories.history_compare import Difference
from tests.support.kafka.kafka_oracle import available
from tests.support.tier.s3_server import seaweedfs
from tests.support.tier_sides.compare import DELIBERATE, differences
from tests.support.tier_sides.scenes import make_scenes
from tests.support.tier_sides.side import Side, kafka_side, our_side
from tests.support.tier_sides.story import FIRST, SECOND, Part, live

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]

SEED = int(os.environ.get("HOROLOG_TIER_SEED", "1"))
SHOWN = 12
DIFFERENCES = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
Lived = dict[str, tuple[Part, Part]]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """Answers of Kafka and of us, before and after the changes."""
    root, now_ms = tmp_path_factory.mktemp("tiers"), time.time_ns() // 1_000_000
    scenes = make_scenes(SEED, now_ms)
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        kafka = pool.submit(stack.enter_context, kafka_side(root / "kafka"))
        server = stack.enter_context(seaweedfs())
        sides: list[Side] = [kafka.result()]  # a connection of ours would not wait for it for long
        sides.append(stack.enter_context(our_side(root / "ours", server)))
        told = [pool.submit(live, side, scenes, now_ms) for side in sides]
        theirs, own = (each.result() for each in told)
    return {part: (theirs[part], own[part]) for part in (FIRST, SECOND)}


@pytest.mark.parametrize("part", [FIRST, SECOND])
def test_both_say_the_same(lived: Lived, part: str) -> None:
    wrong = [each for each in differences(*lived[part]) if not each.allowed]
    assert not wrong, "\n".join(_story(wrong))


def _story(wrong: list[Difference]) -> Iterator[str]:
    yield f"{len(wrong)} differences, HOROLOG_TIER_SEED={SEED}"
    for each in wrong[:SHOWN]:
        yield f"{each.label}\n  kafka {each.kafka!s:.1000}\n  ours  {each.ours!s:.1000}"


def test_each_deliberate_difference_was_seen(lived: Lived) -> None:
    seen = {each.allowed for part in lived.values() for each in differences(*part)}
    assert seen - {""} == set(DELIBERATE)
    explained = [line for line in DIFFERENCES.read_text().splitlines() if line.count(" | ") == 3]
    assert all(any(line.startswith(f"| {each} †") for line in explained) for each in DELIBERATE)


def test_much_is_only_in_the_tier(lived: Lived) -> None:
    kafka, ours = lived[FIRST]
    for topic, places in ours.places.items():
        assert places == kafka.places[topic]
        assert places.local_start > ours.lives[topic].end / 3, topic
