"""Hundreds of generated histories, lived by a real Kafka 4.3 and by us at the same time.

Both get the same bytes and questions, and must give the same answers to produce, DeleteRecords,
ListOffsets, Fetch and DescribeConfigs, keep the same after retention, and leave the same `.log`,
`.index` and `.timeindex` at each of three clean stops. `tests/support/histories/histories.py` says
what happens in them, `history_compare.DELIBERATE` names all that may differ, and the table in
`docs/differences.md` why.

HOROLOG_HISTORIES says how many (300), HOROLOG_HISTORIES_SEED from which seed (a number, 4), and
HOROLOG_HISTORIES_ONLY=17 lives number 17 alone. A failure prints the history and its seed.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.support.histories.histories import History, make_history
from tests.support.histories.history_compare import DELIBERATE, Difference, differences
from tests.support.histories.history_drive import Driver
from tests.support.histories.history_files import files_of
from tests.support.histories.history_life import Life
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]

COUNT = int(os.environ.get("HOROLOG_HISTORIES", "300"))
SEED = int(os.environ.get("HOROLOG_HISTORIES_SEED", "4"))
ONLY = os.environ.get("HOROLOG_HISTORIES_ONLY")
TOGETHER = 300
SHOWN = 3
KAFKA = {
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "0",
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "1",  # the cleaner removes old segments, and never cleans
}
OURS = KAFKA | {
    "horolog.retention.clock": "record",
    "horolog.roll.min.interval.ms": "0",
    "horolog.durability": "os",
}
ALL_ERRORS = {0, 2, 10, 18, 32, 45, 47, 76, 87}

Lived = list[tuple[Life, Life]]


@pytest.fixture(scope="module", params=range(0, COUNT, TOGETHER), ids="from_{}".format)
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """Each history as Kafka and as we lived it."""
    first, now_ms = request.param, int(time.time() * 1000)
    numbers = [int(ONLY)] if ONLY else range(first, min(first + TOGETHER, COUNT))
    histories = [make_history(SEED, number, now_ms) for number in numbers]
    root = tmp_path_factory.mktemp("differential")
    kafka = _driver(partial(start_kafka, settings=KAFKA), root / "kafka", histories, now_ms)
    ours = _driver(partial(start_broker, settings=OURS), root / "ours", histories, now_ms)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(driver.live) for driver in (kafka, ours)]:
            done.result()
    return list(zip(kafka.lives, ours.lives, strict=True))


def _driver(start: partial, directory: Path, histories: list[History], now_ms: int) -> Driver:  # type: ignore[type-arg]
    return Driver(start, directory, histories, now_ms, files_of)


def test_both_live_the_same_histories(lived: Lived) -> None:
    wrong = [
        (kafka.history, unexplained)
        for kafka, ours in lived
        if (unexplained := [each for each in differences(kafka, ours) if not each.allowed])
    ]
    assert not wrong, "\n\n".join(_story(lived, wrong))


def _story(lived: Lived, wrong: list[tuple[History, list[Difference]]]) -> Iterator[str]:
    """The first histories that went apart, with all that is needed to see it again."""
    yield f"{len(wrong)} of {len(lived)} histories differ: {[each.number for each, _ in wrong]}"
    for history, found in wrong[:SHOWN]:
        yield f"HOROLOG_HISTORIES_SEED={SEED} HOROLOG_HISTORIES_ONLY={history.number}\n{history}"
        for each in found[:SHOWN]:
            yield f"{each.label}\n  kafka {each.kafka!s:.2000}\n  ours  {each.ours!s:.2000}"


@pytest.mark.skipif(ONLY is not None or COUNT < TOGETHER, reason="few histories hold little")
def test_the_histories_hold_what_they_should(lived: Lived) -> None:
    errors, kept = Counter[int](), Counter[str]()
    for kafka, _ in lived:
        errors.update(each["error"] for label, each in kafka.told.items() if "produce" in label)
        start = kafka.told["retained from"]
        kept["nothing" if start == kafka.told["2 end"] else "some" if start else "all"] += 1
    assert errors.keys() >= ALL_ERRORS
    assert errors[0] > sum(errors.values()) / 2
    assert min(kept["nothing"], kept["some"], kept["all"]) > len(lived) / 20
    assert sum(len(kafka.told["3 segments"]) > 2 for kafka, _ in lived) > len(lived) / 4


@pytest.mark.skipif(ONLY is not None or COUNT < TOGETHER, reason="few histories hold little")
def test_each_deliberate_difference_was_seen(lived: Lived) -> None:
    seen = {each.allowed for kafka, ours in lived for each in differences(kafka, ours)}
    assert seen - {""} == set(DELIBERATE)
