"""How long a cleaner takes to choose among ten thousand partitions, of three closed segments each.

In this process, on a simulated disk: it is a matter of memory and arithmetic alone.
"""

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from broker.tasks.cleaner import judge_all
from protocol.records.builder import build_batch
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.log.log import Log
from storage.retention.cleanability import first_of
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.peers import Peer
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.logs import make_durable, open_log

NOW_MS = 1_700_000_000_000
PARTITIONS, CLOSED_SEGMENTS, LOOKS = 10_000, 3, 5
LIMITS = {"max_compaction_lag_ms": 86_400_000, "min_compaction_lag_ms": 1000}


def measure(_: Peer, scale: Scale) -> Mapping[str, float]:
    """CPU of the shortest of some looks, with and without bounds on the lag, for 10,000."""
    count = min(scale.partitions * 3, PARTITIONS)
    return {name: _choice_ms(count, lags) for name, lags in (("plain", {}), ("lags", LIMITS))}


def _choice_ms(count: int, lags: Mapping[str, Any]) -> float:
    clock = SimClock(NOW_MS)
    env = sim_env(clock=clock)
    offsets = CleanerOffsets(env.fs, "/data")
    logs = [SimpleNamespace(log=_log(env, number, lags)) for number in range(count)]
    clock.advance(LIMITS["min_compaction_lag_ms"])
    took = []
    for _ in range(LOOKS):
        began = time.process_time()
        verdicts, _ = judge_all(logs, offsets, env.clock.now_ms())  # type: ignore[arg-type]
        first_of((number, each) for number, each in enumerate(verdicts) if each is not None)
        took.append(time.process_time() - began)
    return min(took) * 1000 * PARTITIONS / count


def _log(env: Any, number: int, lags: Mapping[str, Any]) -> Log:
    compact = frozenset({"compact"})
    log = open_log(env, path=f"/data/t-{number}", cleanup_policy=compact, **lags)
    for _ in range(CLOSED_SEGMENTS):
        batch = build_batch([(env.clock.now_ms(), b"key", b"value")])
        log.append(memoryview(batch), acks_all=False, leader_epoch=0)
        log.roll()
    make_durable(log)
    return log


CELLS = (
    Cell(
        "clean-choice",
        (
            Figure("plain", "ms", "lower", under=20),
            Figure("lags", "ms", "lower", under=20),
        ),
        measure,
        only_ours=True,
        most_rounds=1,
    ),
)
