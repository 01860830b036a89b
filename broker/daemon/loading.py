"""Loading of the data directory, before clients may come."""

from broker.daemon.services import Services
from broker.runtime.event_log import event
from config.errors import ConfigError
from storage.errors import StorageError


def load_directory(services: Services) -> None:
    """Locks the directory and recovers all that is in it. Blocks: run it on a lane.

    Raises StorageError when it cannot be used, ConfigError for a stored setting that is refused.
    """
    logs = services.logs
    logs.open_directory(services.config.broker_config.cluster_id, services.node_id)
    services.disk_space.ballast = logs.ballast
    services.disk_space.look()
    services.crash_guard.started(was_clean=logs.was_clean)
    services.intake.look()
    try:
        _load(services)
    except (StorageError, ConfigError):
        services.crash_guard.refused()
        logs.release()
        raise


def _load(services: Services) -> None:
    logs = services.logs
    services.topics.restore_settings()
    services.quotas.load()
    logs.load()
    if logs.upgraded_segments:
        event("old_segments_upgraded", segments=logs.upgraded_segments, format=2)
    services.topics.load(services.make_partition)
    services.producer_ids.load()
