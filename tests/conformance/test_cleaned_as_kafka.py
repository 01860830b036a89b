"""The same generated logs, compacted by a real Kafka 4.3 and by us, hold the same records.

Keys, tombstones, transactions (aborted, committed, open), producers, codecs, dirty times. After the
first run the two change directories, more comes in, and each goes on with what the other has left.

HOROLOG_CLEANED_LOGS says how many (200), HOROLOG_CLEANED_SEED from which seed (a number, 5).
"""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.histories.cleaned_twins import (
    CLEAN_SHUTDOWN,
    Twin,
    add_segment,
    bases_of,
    batches_of,
    clean_parts,
    exchange,
    fill,
    temporary_files,
    twins,
)
from tests.support.histories.history_requests import ManyTopics
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]

COUNT = int(os.environ.get("HOROLOG_CLEANED_LOGS", "200"))
SEED = int(os.environ.get("HOROLOG_CLEANED_SEED", "5"))
WITHIN_SECONDS, STILL_SECONDS = 90, 1.0
SHOWN = 3
SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),
    "log.cleaner.io.buffer.size": str(512 << 10),
    "log.initial.task.delay.ms": "86400000",
    "log.segment.delete.delay.ms": "0",
}
KAFKA, OURS = "kafka", "ours"
START = {
    KAFKA: partial(start_kafka, settings=SETTINGS),
    OURS: partial(start_broker, settings=SETTINGS),
}


class Cleaned(NamedTuple):
    """What a side held after a run: of each topic the batches and where segments begin."""

    batches: dict[Twin, dict[int, Any]]
    bases: dict[Twin, list[str]]
    clean_parts: dict[str, int]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Cleaned]]:
    """Both runs of both sides; the second is over the files of the other side's first."""
    root = tmp_path_factory.mktemp("cleaned")
    directories = {side: root / side for side in START}
    topics = twins(SEED, COUNT)
    _both(partial(_create, topics=topics), directories)
    for directory in directories.values():
        for twin in topics:
            fill(twin, directory)
        (directory / CLEAN_SHUTDOWN).unlink()  # so that producers are read from the logs
    found: dict[str, list[Cleaned]] = {side: [] for side in START}
    for turn in range(2):
        if turn:
            exchange(topics, *directories.values())
            for directory in directories.values():
                for twin in topics:
                    add_segment(twin, directory)
        _clean(directories, clean_parts(directories[OURS]) if turn else {})
        for side, directory in directories.items():
            assert not list(temporary_files(directory))
            found[side].append(
                Cleaned(
                    {twin: batches_of(twin, directory) for twin in topics},
                    {twin: bases_of(twin, directory) for twin in topics},
                    clean_parts(directory),
                )
            )
    return found


def _both(work: Any, directories: dict[str, Path]) -> None:
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work, side, directories[side]) for side in START]:
            done.result()


def _create(side: str, directory: Path, topics: list[Twin]) -> None:
    with START[side](directory) as node:
        ask = ManyTopics(node.bootstrap, {})
        codes = ask.create({twin.topic: twin.settings for twin in topics})
        assert set(codes.values()) == {0}
        ask.close()


def _clean(directories: dict[str, Path], before: dict[str, int]) -> None:
    """Starts both and stops them when neither has anything left to clean."""
    with START[KAFKA](directories[KAFKA]), START[OURS](directories[OURS]):
        deadline, still_since, last = time.monotonic() + WITHIN_SECONDS, time.monotonic(), before
        while True:
            theirs, own = (clean_parts(directories[side]) for side in (KAFKA, OURS))
            if own != last or theirs != own:
                last, still_since = own, time.monotonic()
            elif own != before and time.monotonic() - still_since > STILL_SECONDS:
                return
            assert time.monotonic() < deadline, sorted(theirs.items() ^ own.items())[:20]
            time.sleep(0.1)


@pytest.mark.parametrize("turn", [0, 1], ids=["first_run", "each_after_the_other"])
def test_both_leave_the_same_records_at_the_same_offsets(
    sides: dict[str, list[Cleaned]], turn: int
) -> None:
    kafka, ours = sides[KAFKA][turn], sides[OURS][turn]
    wrong = {
        twin: (_full(theirs), _full(ours.batches[twin]))
        for twin, theirs in kafka.batches.items()
        if _full(theirs) != _full(ours.batches[twin])
    }
    assert not wrong, "\n".join(_story(wrong))
    assert kafka.clean_parts == ours.clean_parts
    assert len(ours.clean_parts) > COUNT * 0.8


def test_a_producer_s_last_batch_stays_wherever_kafka_keeps_it(
    sides: dict[str, list[Cleaned]],
) -> None:
    """We keep some more: at a start Kafka forgets producers whose last record claims an old time,
    we do so minutes later."""
    kafka, ours = sides[KAFKA][0], sides[OURS][0]
    kept = 0
    for twin, batches in kafka.batches.items():
        for base, batch in batches.items():
            if not batch[1]:
                kept += 1
                own = ours.batches[twin][base][0]
                assert own == batch[0]._replace(max_timestamp=own.max_timestamp)
    assert kept > COUNT / 20


def test_the_logs_hold_what_they_should(sides: dict[str, list[Cleaned]]) -> None:
    first = sides[OURS][0]
    batches = [batch for found in first.batches.values() for batch in found.values()]
    assert sum(header.is_control for header, _ in batches) > COUNT / 2
    assert sum(record.value is None for _, records in batches for record in records) > COUNT / 2
    assert sum(len(bases) > 2 for bases in first.bases.values()) > COUNT / 10


def _full(batches: dict[int, Any]) -> dict[int, Any]:
    return {base: batch for base, batch in batches.items() if batch[1]}


def _story(wrong: dict[Twin, Any]) -> Iterator[str]:
    yield f"{len(wrong)} of {COUNT} logs differ; HOROLOG_CLEANED_SEED={SEED}"
    for twin, (theirs, own) in list(wrong.items())[:SHOWN]:
        for base in sorted(theirs.keys() | own.keys()):
            if theirs.get(base) != own.get(base):
                yield f"{twin} {base}\n  kafka {theirs.get(base)}\n  ours  {own.get(base)}"
