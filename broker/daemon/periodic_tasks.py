"""Which periodic work a broker has, and how often each runs: one line per task.

Everything that touches the disk runs on a lane. Intervals are read anew each time, so settings that
change take effect with the next round. The order matters when a held clock is moved, because then
they run one after the other: the clock is looked at first, segments end before they may go or
be cleaned, and what went leaves files to remove.
"""

from functools import partial
from typing import TYPE_CHECKING

from broker.partitions.sync_thread import Durable
from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from broker.runtime.memory_account import MemoryClass
from broker.tasks.rolling import CHECK_SECONDS

if TYPE_CHECKING:
    from broker.daemon.services import PeriodicServices
    from storage.log.log import Log

SWEEP_SECONDS = 1.0
DELETION_SECONDS = 1.0
FLUSH_CHECK_SECONDS = 1.0
CLOCK_CHECK_SECONDS = 1.0
STARTS_CHECK_SECONDS = 5.0
MEMORY_SECONDS = 5.0


def schedule(broker: "PeriodicServices") -> None:
    """Registers all tasks with the broker's runner."""
    broker.config.subscribe(broker.rolling.settings_changed)
    broker.config.subscribe(broker.cleaner.settings_changed)
    settings = broker.config.broker_config
    every = broker.tasks.every
    every("connections", lambda: SWEEP_SECONDS, lambda: sweep(broker), physical=True)
    every("clock", lambda: CLOCK_CHECK_SECONDS, lambda: watch_clock(broker))
    every("flush", lambda: FLUSH_CHECK_SECONDS, lambda: flush_old(broker))
    every("rolling", lambda: CHECK_SECONDS, broker.rolling.run)
    every(
        "retention",
        lambda: settings.log_retention_check_interval_ms / 1000,
        broker.retention.run,
        first=settings.log_initial_task_delay_ms / 1000,
    )
    every(
        "cleaner",
        lambda: broker.config.broker_config.log_cleaner_backoff_ms / 1000,
        broker.cleaner.run,
    )
    every("memory", lambda: MEMORY_SECONDS, lambda: share_memory(broker))
    every("starts", lambda: STARTS_CHECK_SECONDS, lambda: watch_starts(broker))
    every("deletion", lambda: DELETION_SECONDS, lambda: remove_deleted(broker))
    every(
        "offsets",
        lambda: settings.offsets_retention_check_interval_ms / 1000,
        broker.groups.expire,
    )
    every(
        "transactions",
        lambda: settings.transaction_abort_timed_out_transaction_cleanup_interval_ms / 1000,
        broker.transactions.abort_overdue,
    )
    every(
        "transactional_ids",
        lambda: settings.transaction_remove_expired_transaction_cleanup_interval_ms / 1000,
        broker.transactions.expire,
    )
    if broker.audit is not None:
        every(
            "audit",
            lambda: broker.config.broker_config.horolog_audit_interval_ms / 1000,
            broker.audit.flush,
        )
    if broker.held_time is not None:
        every("groups", lambda: 0.0, broker.groups.follow)
    every(
        "producers",
        lambda: settings.producer_id_expiration_check_interval_ms / 1000,
        lambda: expire_producers(broker),
    )
    every(
        "checkpoints",
        lambda: (
            min(
                settings.log_flush_offset_checkpoint_interval_ms,
                settings.log_flush_start_offset_checkpoint_interval_ms,
                settings.replica_high_watermark_checkpoint_interval_ms,
            )
            / 1000
        ),
        lambda: checkpoint(broker),
    )


async def sweep(broker: "PeriodicServices") -> None:
    """Drops connections that are idle, slow or stalled."""
    await broker.server.sweep(broker.probes.monotonic())
    broker.trail.flush()


async def watch_clock(broker: "PeriodicServices") -> None:
    """Notices a wall clock that steps."""
    broker.clock_watch.look()


async def share_memory(broker: "PeriodicServices") -> None:
    """What partitions remember of producers stays in its share of memory."""
    share = broker.memory.share(MemoryClass.PRODUCERS)
    if broker.log_manager.share_producers(share):
        broker.memory.refuse(MemoryClass.PRODUCERS, 0)


async def watch_starts(broker: "PeriodicServices") -> None:
    """A broker that has lived for a while is in no loop of crashes."""
    await broker.lanes.run(broker.log_dir, broker.crash_guard.look)
    broker.intake.look()


async def flush_old(broker: "PeriodicServices") -> None:
    """`flush.ms`: what has been unsynced for so long is synced."""

    def flush_seconds(durable: Durable) -> float:
        log: Log = durable  # type: ignore[assignment]
        return log.config.flush_ms / 1000

    broker.commit.flush_older_than(flush_seconds, broker.clock.monotonic())


async def remove_deleted(broker: "PeriodicServices") -> None:
    """Files of deleted partitions and removed segments go, some at a time."""
    remove = broker.log_manager.remove_deleted
    while await broker.lanes.run(broker.log_dir, partial(remove, hurry=broker.disk_space.is_low)):
        pass


async def expire_producers(broker: "PeriodicServices") -> None:
    """Producers that have been silent for long are forgotten (KIP-854).

    It changes the log's state, so it waits for its turn among the writes of each partition. A clock
    in doubt makes nobody forgotten.
    """
    if broker.clock_watch.look():
        return
    expiration_ms = broker.config.broker_config.producer_id_expiration_ms
    for topic in broker.catalog.image.topics.values():
        for partition in topic.partitions:
            producers = partition.log.producers
            if len(producers):
                expire = partial(producers.expire, broker.clock.now_ms(), expiration_ms)
                await wait_for(partition.in_turn(expire))


async def checkpoint(broker: "PeriodicServices") -> None:
    """Recovery points, start offsets and high watermarks reach their files."""
    await broker.lanes.run(broker.log_dir, broker.log_manager.checkpoint)
    for damage in broker.log_manager.damage[:]:
        event("damage_found", "warning", detail=damage)
        broker.log_manager.damage.remove(damage)
