"""A million hostile record times: memory stays bounded, counters exact, answers right (time.md 2).

Extremes of 64 bits, zero, negative ones, and the present in every wrong unit; once into a log on a
real disk, once over the wire from many clients into a topic for each policy.
"""

import random
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.records.builder import build_batch
from storage.log.lifecycle import learn_times, plan_retention, roll_if_due
from storage.log.log import Log
from storage.posix import real_env
from tests.support.clients.wire import WireClient
from tests.support.records.logs import append_bytes, make_durable, open_log, reopened
from tests.support.worlds.watched_broker import WatchedBroker, produce_to

MILLION = 1_000_000
INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)
HOUR, DAY = 3_600_000, 86_400_000
MIB = 1 << 20
POLICIES = {
    "reject": "rejected",
    "accept": "accepted",
    "clamp": "clamped",
    "restamp": "restamped",
    "quarantine": "quarantined",
}
CLIENTS = 2_500


def hostile_times(dice: random.Random, count: int) -> list[int]:
    """Times that no record can have; of many the first is 0: a delta reaches all from there."""
    now = int(time.time() * 1000)
    extremes = (INT64_MAX, INT64_MIN, INT64_MIN + 1, 2**62, 0, -2, 1)
    units = (now // 1000, now * 1000, now * 1_000_000, (now + 11_644_473_600_000) * 10_000)
    times = [0] if count > 1 else []
    while len(times) < count:
        wild = dice.getrandbits(64) + INT64_MIN
        times.append(dice.choice((*extremes, *units, wild, wild >> dice.randrange(24))))
    return [0 if at == -1 or abs(at - now) < 400 * DAY else at for at in times]


def hostile_batch(dice: random.Random, count: int) -> tuple[bytes, list[int]]:
    """A batch of them, and the times."""
    times = hostile_times(dice, count)
    return bytes(build_batch([(at, b"k", b"v") for at in times])), times


# -- a log


def resident_bytes() -> int:
    """Of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """On a real disk, ended by a clock that must not end it at every record."""
    found = open_log(real_env(), path=f"{tmp_path}/t-0", segment_ms=1000)
    yield found
    found.close()


def test_a_log_takes_a_million_hostile_times(log: Log) -> None:
    dice = random.Random(4)
    batches = [hostile_batch(dice, 1000) for _ in range(20)]
    single = [hostile_batch(dice, 1) for _ in range(50)]
    append_bytes(log, batches[0][0])
    before, began = resident_bytes(), time.monotonic()
    for number in range(MILLION // 1000 - 10):
        append_bytes(log, batches[number % 20][0])
    for number in range(10_000):
        append_bytes(log, single[number % 50][0])
    make_durable(log)
    floors = (time.monotonic() - began) / 10  # horolog.roll.min.interval.ms

    snapshot = log.snapshot
    assert snapshot.log_end_offset == MILLION + 1000
    assert resident_bytes() - before < 32 * MIB
    assert len(snapshot.segments) <= 2 + floors, "wild times make no segment of each batch"
    written = snapshot.size_bytes
    for segment in snapshot.segments:
        indexes, rules = log.search.lookup
        offsets, times, zones = indexes.of(segment, segment.size_bytes, rules)
        assert offsets.entries <= written / rules.interval_bytes + 1
        assert times.entries <= offsets.entries + 1
        assert zones.row_count <= written / 4096 + 1

    assert learn_times(log, 1000)
    now_ms = int(time.time() * 1000)
    plan_retention(log, now_ms)
    roll_if_due(log, now_ms)
    _check_answers(log, batches[0][1])
    log = reopened(log, real_env())
    assert log.snapshot.log_end_offset == MILLION + 1000
    _check_answers(log, batches[0][1])
    log.close()


def _check_answers(log: Log, first: list[int]) -> None:
    """The first record that is late enough lies in the first batch, whatever follows."""
    for wanted in (0, 1, 2**40, 2**62, INT64_MAX):
        expected = next((index, at) for index, at in enumerate(first) if at >= wanted)
        found = log.search.first_at_or_after(wanted, below=MILLION)
        assert found is not None
        assert (found.offset, found.timestamp) == expected


# -- a broker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    settings = {"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "0"}
    with WatchedBroker(tmp_path_factory.mktemp("hostile") / "data", settings) as running:
        yield running


def test_a_broker_counts_a_million_hostile_times_and_keeps_its_size(broker: WatchedBroker) -> None:
    for policy in POLICIES:
        broker.make_topic(
            f"hostile-{policy}",
            horolog_timestamp_policy=policy,
            message_timestamp_before_max_ms=str(DAY),
            message_timestamp_after_max_ms=str(HOUR),
            segment_ms="1000",
        )
    dice = random.Random(8)
    batches = [hostile_batch(dice, 1000) for _ in range(10)]
    _produce_all(broker, batches[:2], rounds=1)
    before = broker.status("VmRSS")
    rounds = MILLION // (len(POLICIES) * 1000 * len(batches))
    _produce_all(broker, batches, rounds=rounds)

    expected: Counter[tuple[str, str]] = Counter()
    now_ms = int(time.time() * 1000)
    for _, times in [*batches[:2], *batches * rounds]:
        expected["direction", "future"] += sum(at > now_ms for at in times)
        expected["direction", "past"] += sum(at < now_ms for at in times)
        expected["reason", "zero"] += times.count(0)
        expected["reason", "negative"] += sum(at < 0 for at in times)
    for policy, action in POLICIES.items():
        for (label, value), count in expected.items():
            labels = {"topic": f"hostile-{policy}", "action": action, label: value}
            found = broker.metric("horolog_dirty_timestamps_total", **labels)
            assert found == count, (policy, label, value)
    assert broker.status("VmRSS") - before < 48 * MIB
    broker.check_unharmed()


def test_many_clients_with_bad_clocks_make_neither_series_nor_memory(
    broker: WatchedBroker,
) -> None:
    broker.make_topic("crowd", horolog_timestamp_policy="accept", segment_ms="1000")
    dice = random.Random(2)
    data = [hostile_batch(dice, 1)[0] for _ in range(20)]
    series = len(broker.metrics().splitlines())  # what metrics need is in memory from here on
    before = broker.status("VmRSS")
    for number in range(CLIENTS):
        with WireClient(broker.host, broker.port, f"sensor-{number:05}-{'x' * 100}") as client:
            answer = produce_to(client, data[number % 20], topic="crowd", acks=1)
            assert answer.error_code == 0
    assert broker.metric("horolog_dirty_timestamps_total", topic="crowd") == CLIENTS
    assert broker.metric("horolog_dirty_clients_forgotten_total") > 0
    assert len(broker.metrics().splitlines()) - series < 120, "names of clients are no labels"
    assert broker.status("VmRSS") - before < 24 * MIB
    broker.check_unharmed()


def _produce_all(
    broker: WatchedBroker, batches: list[tuple[bytes, list[int]]], rounds: int
) -> None:
    """Every batch to the topic of each policy, so many times."""
    refused = 32  # INVALID_TIMESTAMP
    with broker.client() as client:
        for _ in range(rounds):
            for data, times in batches:
                for policy in POLICIES:
                    answer = produce_to(client, data, topic=f"hostile-{policy}", acks=1)
                    assert answer.error_code == (refused if policy == "reject" else 0)
                    errors = answer.record_errors or ()
                    assert len(errors) == (len(times) if policy == "reject" else 0)
