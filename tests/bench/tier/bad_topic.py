"""A tiered topic of records with bad times: filled, gone to the store, and known to the last."""

import random
import time
from collections.abc import Iterator, Mapping
from typing import Final

from tests.bench import topics
from tests.bench.frames import PRODUCE_VERSION, produce
from tests.bench.tier.nodes import TieredNode
from tests.bench.wire import BenchFailed, Wire, answer
from tests.support.clients.admin import Admin
from tests.support.tier_times.bad_times import Tick, bad_times
from tests.support.tier_times.known_times import ArrivedBatch, KnownTimes

TOPIC: Final = "bad-times"
FIRST_MS: Final = 1_790_000_000_000
STARTED: Final = "2026-09-21T13:13:20Z"
"""An hour before: with this clock our broker starts."""
CLOCK_HELD: Final = ("--test-clock", STARTED)
SEED: Final = 19
EARLIEST_LOCAL, LATEST_TIERED = -4, -5
AWAY_WITHIN_SECONDS, LOOK_SECONDS = 300, 0.1


def topic_settings(segment_bytes: int) -> Mapping[str, str]:
    """Settings of a topic that keeps one closed segment on the disk, and takes any time."""
    return {
        "remote.storage.enable": "true",
        "segment.bytes": str(segment_bytes),
        "local.retention.bytes": str(segment_bytes),
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "message.timestamp.after.max.ms": str(2**63 - 1),
    }


def make_bad_topic(node: TieredNode, size_bytes: int, segment_bytes: int) -> KnownTimes:
    """Fills the topic; returns when all closed segments are in the store, and most only there.

    Our broker's clock stands still but for what the records say, so that each arrival is known.
    """
    topics.create(node.bootstrap, TOPIC, 1, topic_settings(segment_bytes))
    batches = _fill(node, bad_times(SEED, FIRST_MS, size_bytes))
    wait_until_away(node, TOPIC)
    return KnownTimes(batches, {*node.local_bases(TOPIC), *node.stored_bases(TOPIC)})


def _fill(node: TieredNode, ticks: Iterator[Tick]) -> list[ArrivedBatch]:
    admin = Admin(node.process.facts["http"]) if node.is_ours else None
    if admin is not None:
        admin.post("/api/clock/freeze")
        admin.post("/api/clock/set", to=FIRST_MS, clock="both")
    sent: list[ArrivedBatch] = []
    now_ms = FIRST_MS
    with Wire(node.bootstrap) as wire:
        for tick in ticks:
            now_ms += tick.step_ms
            if admin is not None:
                admin.post("/api/clock/step", by=f"{tick.step_ms}ms")
            sent += _append(wire, tick, now_ms)
    if admin is not None:
        admin.post("/api/clock/release")
    return sent


def _append(wire: Wire, tick: Tick, now_ms: int) -> Iterator[ArrivedBatch]:
    for batch in tick.batches:
        wire.send(produce(TOPIC, batch.data, acks=1))
    for batch in tick.batches:
        got = answer("Produce", PRODUCE_VERSION, wire.receive()).responses[0]
        if code := got.partition_responses[0].error_code:
            raise BenchFailed(f"a batch was refused: {code}")
        yield ArrivedBatch(batch.times, now_ms, len(batch.data))


def wait_until_away(node: TieredNode, topic: str) -> None:
    """Until all closed segments are in the store, and the disk has no more than it keeps."""
    ends = time.monotonic() + AWAY_WITHIN_SECONDS
    while not _is_away(node, topic):
        if time.monotonic() > ends:
            raise BenchFailed(f"{topic} does not go to the store")
        time.sleep(LOOK_SECONDS)


def _is_away(node: TieredNode, topic: str) -> bool:
    local = node.local_bases(topic)
    return (
        0 < len(local) <= 3
        and node.special(topic, EARLIEST_LOCAL) == local[0]
        and node.special(topic, LATEST_TIERED) == local[-1] - 1
    )


def times_to_ask(known: KnownTimes, clock: str, seed: int) -> Iterator[int]:
    """Endless: times of records, those beside, any in between, and some beyond all of them."""
    dice = random.Random(seed)
    times = known.by_clock[clock]
    low, high = int(times[times > 0].min()), int(times.max())
    now_ms = int(known.by_clock["arrival"][-1])
    while True:
        kind = dice.random()
        if kind < 0.6:
            yield max(0, int(times[dice.randrange(len(times))]) + dice.choice((-1, 0, 0, 1)))
        elif kind < 0.95:
            yield dice.randint(FIRST_MS, now_ms)
        else:
            yield dice.choice((0, 1, low - 1, dice.randint(low, high), high, high + 1, 2**60))
