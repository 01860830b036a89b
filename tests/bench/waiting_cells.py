"""A share group with a delay: many records due over an hour, taken in, waiting, coming due.

In this process and without a log, by a clock that the cell moves in steps of 5 ms: what is measured
is how exact it is, and what memory and arithmetic take.
"""

import random
import time
import tracemalloc
from collections.abc import Mapping

from broker.share.acknowledge import ACCEPT, AcknowledgedPart
from broker.share.acquire import Ask, Fetched
from broker.share.partition import SharePartition
from broker.share.states import ShareRules
from broker.share.waits.delayed import TakenIn
from broker.share.waits.wheel import Due
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.peers import Peer
from tests.support.histories.share_timer import ByHand

BATCH, STEP_MS, HOUR_MS = 1000, 5, 3_600_000
BEGIN_MS = 1_700_000_000_000
RECORDS_A_MEGABYTE = 1250
"""So that the full scale has a million records."""


def dues_of(count: int) -> list[int]:
    """Times over an hour, by the order of the log but for some seconds, as queues of jobs have."""
    dice = random.Random(1)
    span = max(HOUR_MS * count // 1_000_000, 1000)
    dues = [BEGIN_MS + 1 + span * number // count for number in range(count)]
    for first in range(0, count, BATCH):
        part = dues[first : first + BATCH]
        dice.shuffle(part)
        dues[first : first + BATCH] = part
    return dues


def take_in(partition: SharePartition, dues: list[int]) -> None:
    """Record batches of a thousand, as the intake gives them."""
    assert partition.delayed is not None
    for first in range(0, len(dues), BATCH):
        part = dues[first : first + BATCH]
        later = [Due(at_ms, at, at) for at, at_ms in enumerate(part, first)]
        batch = TakenIn(first, first + len(part) - 1, later)
        partition.delayed.take_in(first, [batch], partition.rules)


def deliver(partition: SharePartition, dues: list[int]) -> list[int]:
    """How late each record was, in ms; all are accepted at once."""
    assert partition.delayed is not None
    late: list[int] = []
    now_ms, count = BEGIN_MS, len(dues)
    while len(late) < count:
        now_ms += STEP_MS
        partition.delayed.come_due(now_ms, partition.rules)
        while (at := partition.next_fetch()) is not None:
            base = at // BATCH * BATCH
            read = [(base, min(base + BATCH, count) - 1)]
            got = partition.acquire("m", Fetched(at, read), Ask(500, 500))
            late += [now_ms - dues[each] for part in got for each in range(part[0], part[1] + 1)]
            said = [AcknowledgedPart(part.first, part.last, ACCEPT) for part in got]
            write = partition.acknowledge("m", said)
            assert write is not None
            partition.written(write)
    return sorted(late)


def measure_waiting(_: Peer, scale: Scale) -> Mapping[str, float]:
    count = scale.megabytes * RECORDS_A_MEGABYTE
    dues = dues_of(count)
    partition = SharePartition(0, ByHand(), ShareRules(max_pending=count + 1))
    partition.delay(BEGIN_MS)
    began = time.process_time()
    take_in(partition, dues)
    taken_in = time.process_time() - began
    began = time.process_time()
    late = deliver(partition, dues)
    delivered = time.process_time() - began
    assert partition.start == count, "none is lost"
    return {
        "memory": memory_of(dues),
        "early": sum(each < 0 for each in late),
        "late p99": late[count * 99 // 100],
        "taken in": count / taken_in,
        "delivered": count / delivered,
    }


def memory_of(dues: list[int]) -> float:
    """Megabytes for a million that wait, by a tenth of them: tracing takes long."""
    some = dues[: max(len(dues) // 10, 1)]
    partition = SharePartition(0, ByHand(), ShareRules(max_pending=len(dues)))
    partition.delay(BEGIN_MS)
    tracemalloc.start()
    take_in(partition, some)
    size_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size_bytes / len(some)


CELLS = (
    Cell(
        "a-million-waiting",
        (
            Figure("memory", "MB", "lower", under=40),
            Figure("early", "records", "lower", under=1),
            Figure("late p99", "ms", "lower", under=10),
            Figure("taken in", "records/s", "higher"),
            Figure("delivered", "records/s", "higher"),
        ),
        measure_waiting,
        most_rounds=1,
        only_ours=True,
    ),
)
