"""Periodic tasks of the broker and their intervals: one line per task.

Everything that touches the disk runs on a lane. Intervals are read each time, so settings that
change take effect with the next round. The order matters when a test clock is moved, because then
they run one after the other: the clock is checked first, segments end before they are removed or
cleaned, and removed ones leave files to delete.
"""

from functools import partial
from typing import TYPE_CHECKING

from broker.daemon.oauth_listeners import CHECK_SECONDS as KEYS_SECONDS
from broker.daemon.oauth_listeners import refresh_keys
from broker.daemon.services import Services
from broker.groups.ends_elsewhere import Ends, refresh_ends
from broker.partitions.sync_thread import Durable
from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from broker.runtime.memory_account import MemoryClass
from broker.tasks.rolling import CHECK_SECONDS

if TYPE_CHECKING:
    from storage.log.log import Log

SWEEP_SECONDS = 1.0
DELETION_SECONDS = 1.0
FLUSH_CHECK_SECONDS = 1.0
CLOCK_CHECK_SECONDS = 1.0
STARTS_CHECK_SECONDS = 5.0
MEMORY_SECONDS = 5.0
ENDS_SECONDS = 5.0
SHARE_STARTS_SECONDS = 30.0
TELEMETRY_SECONDS = 5.0
SWEEP_FIRST_SECONDS = 600.0
TIER_FIRST_SECONDS = 1.0
TIER_LEFT_SECONDS = 5.0  # a stop does not wait longer for a store that says nothing


def schedule(services: Services) -> None:
    """Registers all tasks with the broker's runner."""
    services.config.subscribe(services.rolling.settings_changed)
    services.config.subscribe(services.cleaner.settings_changed)
    settings = services.config.broker_config
    every = services.tasks.every
    every("connections", lambda: SWEEP_SECONDS, lambda: sweep(services), physical=True)
    every("clock", lambda: CLOCK_CHECK_SECONDS, lambda: watch_clock(services))
    every("flush", lambda: FLUSH_CHECK_SECONDS, lambda: flush_old(services))
    every("rolling", lambda: CHECK_SECONDS, services.rolling.run)
    every(
        "retention",
        lambda: settings.log_retention_check_interval_ms / 1000,
        services.retention.run,
        first=settings.log_initial_task_delay_ms / 1000,
    )
    every(
        "cleaner",
        lambda: services.config.broker_config.log_cleaner_backoff_ms / 1000,
        services.cleaner.run,
    )
    watch_tier(services)
    every("memory", lambda: MEMORY_SECONDS, lambda: share_memory(services))
    watch_security(services)
    if settings.horolog_client_telemetry_enable:
        every("telemetry", lambda: TELEMETRY_SECONDS, services.client_telemetry.expire)
    every("starts", lambda: STARTS_CHECK_SECONDS, lambda: watch_starts(services))
    every("deletion", lambda: DELETION_SECONDS, lambda: remove_deleted(services))
    watch_groups(services)
    every(
        "transactions",
        lambda: settings.transaction_abort_timed_out_transaction_cleanup_interval_ms / 1000,
        services.transactions.abort_overdue,
    )
    every(
        "transactional_ids",
        lambda: settings.transaction_remove_expired_transaction_cleanup_interval_ms / 1000,
        services.transactions.expire,
    )
    if services.audit is not None:
        every(
            "audit",
            lambda: services.config.broker_config.horolog_audit_interval_ms / 1000,
            services.audit.flush,
        )
    if services.security_mirror is not None:
        every("security_audit", lambda: SWEEP_SECONDS, services.security_mirror.flush)
    if services.held_time is not None:
        every("groups", lambda: 0.0, services.groups.follow)
    every(
        "producers",
        lambda: settings.producer_id_expiration_check_interval_ms / 1000,
        lambda: expire_producers(services),
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
        lambda: checkpoint(services),
    )


def watch_tier(services: Services) -> None:
    """Has segments copied to the tier, where there is one, and what nothing names removed."""
    if services.tiering is None or services.sweep is None:
        return
    settings = services.config.broker_config
    interval = settings.remote_log_manager_task_interval_ms / 1000
    first = min(TIER_FIRST_SECONDS, interval)
    every = partial(services.tasks.every, left_after=TIER_LEFT_SECONDS)
    every("tier", lambda: interval, services.tiering.run, first=first)
    rest = settings.horolog_tier_sweep_interval_ms / 1000
    first = min(SWEEP_FIRST_SECONDS, rest)
    every("orphans", lambda: rest, services.sweep.run, first=first)


def watch_groups(services: Services) -> None:
    """Has old offsets of groups removed, and keeps what share groups remember short."""
    settings, pruning = services.config.broker_config, services.share_standing.pruning
    services.tasks.every(
        "offsets",
        lambda: settings.offsets_retention_check_interval_ms / 1000,
        services.groups.expire,
    )
    services.tasks.every(
        "share_snapshots",
        lambda: settings.share_coordinator_cold_partition_snapshot_interval_ms / 1000,
        pruning.renew,
    )
    services.tasks.every(
        "share_pruning",
        lambda: settings.share_coordinator_state_topic_prune_interval_ms / 1000,
        pruning.prune,
    )
    starts = services.share_standing.starts
    if starts is not None:
        services.tasks.every("share_starts", lambda: SHARE_STARTS_SECONDS, starts.refresh)
    if services.fleet is not None and services.fleet.log_ends is not None:
        ask = services.fleet.log_ends.of
        services.tasks.every("ends", lambda: ENDS_SECONDS, lambda: watch_ends(services, ask))


async def watch_ends(services: Services, ask: Ends) -> None:
    """Asks other nodes for the ends of partitions that groups of this one read."""
    groups = list(services.groups.groups.values())
    await refresh_ends(groups, services.topics.image, ask)


def watch_security(services: Services) -> None:
    """Tasks of listeners that have TLS, delegation tokens or OAUTHBEARER."""
    if services.server.tls:
        watch_certificates(services)
    if services.tokens.is_on:
        watch_tokens(services)
    if services.key_sources:
        services.tasks.every(
            "keys", lambda: KEYS_SECONDS, lambda: refresh_keys(services), physical=True
        )


def watch_certificates(services: Services) -> None:
    """Has the certificates of listeners read again once a minute."""
    from broker.daemon.tls_listeners import CHECK_SECONDS, renew_certificates

    services.tasks.every(
        "certificates", lambda: CHECK_SECONDS, lambda: renew_certificates(services), physical=True
    )


def watch_tokens(services: Services) -> None:
    """Has delegation tokens removed that have ended."""
    settings = services.config.broker_config
    services.tasks.every(
        "tokens",
        lambda: settings.delegation_token_expiry_check_interval_ms / 1000,
        lambda: sweep_tokens(services),
    )


async def sweep(services: Services) -> None:
    """Drops connections that are idle, slow or stalled."""
    await services.server.sweep(services.probes.monotonic())
    services.trail.flush()


async def watch_clock(services: Services) -> None:
    """Notices a wall clock that steps, and what is due by it."""
    services.clock_watch.look()
    services.share_reads.follow_clock()


async def share_memory(services: Services) -> None:
    """Keeps the partitions' state of producers in its share of memory."""
    share = services.memory.share(MemoryClass.PRODUCERS)
    if services.logs.share_producers(share):
        services.memory.refuse(MemoryClass.PRODUCERS, 0)


async def watch_starts(services: Services) -> None:
    """A broker that has lived for a while is in no loop of crashes."""
    await services.lane.run(services.crash_guard.look)
    services.intake.look()


async def flush_old(services: Services) -> None:
    """`flush.ms`: what has been unsynced for so long is synced."""

    def flush_seconds(durable: Durable) -> float:
        log: Log = durable  # type: ignore[assignment]
        return log.config.flush_ms / 1000

    services.commit.flush_older_than(flush_seconds, services.clock.monotonic())


async def remove_deleted(services: Services) -> None:
    """Files of deleted partitions and removed segments go, some at a time."""
    remove = services.logs.remove_deleted
    while await services.lane.run(partial(remove, hurry=services.disk_space.is_low)):
        pass


async def sweep_tokens(services: Services) -> None:
    """Delegation tokens that have ended go; while the clock is unverified none does."""
    if not services.clock_watch.look():
        await services.tokens.sweep()


async def expire_producers(services: Services) -> None:
    """Removes producers that have been silent for long (KIP-854).

    It changes the log's state, so it waits for its turn among the writes of each partition. While
    the clock is unverified none is removed.
    """
    if services.clock_watch.look():
        return
    expiration_ms = services.config.broker_config.producer_id_expiration_ms
    for partition in list(services.topics.image.led_here()):
        producers = partition.log.producers
        if len(producers):
            expire = partial(producers.expire, services.clock.now_ms(), expiration_ms)
            await wait_for(partition.writer.in_turn(expire))


async def checkpoint(services: Services) -> None:
    """Recovery points, start offsets and high watermarks reach their files."""
    await services.lane.run(services.logs.checkpoint)
    for damage in services.logs.damage[:]:
        event("sidecar_file_unreadable", "warning", detail=damage)
        services.logs.damage.remove(damage)
