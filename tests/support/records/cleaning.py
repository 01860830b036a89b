"""Compaction as tests drive it: every slice in order, its turn taken at once."""

from collections.abc import Callable, Iterable

from storage.cleaner.cleanable_logs import CleanerOffsets, learn_ages, verdict_on
from storage.cleaner.cleaner import Cleaning, CleaningMemory
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.log.log import Log
from storage.retention.cleanability import Verdict
from storage.tier.tiered_log import TieredLog

COMPACT = frozenset({"compact"})
MEMORY = CleaningMemory(24 * 4096, 0.9, 4096)
LARGER_MEMORY = CleaningMemory(24 * 4096, 0.9, 1 << 16)

Row = tuple[int, bytes | None, bytes | None]


def verdict(log: Log, env: Env, offsets: CleanerOffsets) -> Verdict:
    """Present cleanability of the log."""
    assert learn_ages(log, 1 << 30)
    return verdict_on(log, offsets, env.clock.now_ms())


def clean(
    log: Log,
    env: Env,
    offsets: CleanerOffsets,
    memory: CleaningMemory = MEMORY,
    between: Callable[[], object] = lambda: None,
) -> Cleaning:
    """One run over the log, whether it is eligible or not; `between` is called after each slice."""
    run = Cleaning(log, verdict(log, env, offsets), memory, env)
    for part in run.slices():
        if part.in_turn is not None:
            part.in_turn()
        between()
    offsets.cleaned(log, run.first_dirty, run.stats.next_horizon_ms)
    return run


def clean_tiered(log: Log, logs: LogManager, env: Env, tiered: TieredLog) -> None:
    """One run over all of a log that goes on in a store."""
    log.roll()
    log.mark_durable(log.sync())
    run = Cleaning(log, verdict(log, env, logs.cleaner_offsets), LARGER_MEMORY, env, tiered)
    for part in run.slices():
        if part.in_turn is not None:
            part.in_turn()
    logs.bury(log, run.replaced)
    logs.cleaned(log, run.first_dirty, run.stats.next_horizon_ms)


def compacted(rows: Iterable[tuple[int, Row]], end: int) -> list[tuple[int, Row]]:
    """The model: of the records below `end`, the last one of each key; all records above."""
    rows = list(rows)
    last = {row[1]: offset for offset, row in rows if offset < end}
    return [(offset, row) for offset, row in rows if offset >= end or last.get(row[1]) == offset]
