"""Loading of the data directory, before clients may come."""

from broker.daemon.sasl_listeners import check_somebody_may_enter
from broker.daemon.services import Services
from broker.fleet.directory_mark import check_mark
from broker.runtime.event_log import event
from broker.security.audit.sinks import AuditFile
from broker.security.delegation.tokens_file import FILE_NAME as TOKENS_FILE
from broker.security.users_file import FILE_NAME as USERS_FILE
from config.errors import ConfigError
from storage.directory.log_manager import LogManager
from storage.env import FileSystem
from storage.errors import DirectoryLocked, DiskError
from storage.files.layout import partition_dir_name
from storage.tier.object_cache import ObjectCache

SECRET_FILES = (USERS_FILE, TOKENS_FILE)


def load_directory(services: Services, cluster_id: str) -> None:
    """Locks the directory and recovers all that is in it. Blocks: run it on a lane.

    `cluster_id`: that it is to have, empty for whatever it has.

    Raises StorageError when it cannot be used, ConfigError for a stored setting that is refused.
    """
    logs = services.logs
    logs.open_directory(cluster_id, services.node_id)
    services.disk_space.ballast = logs.ballast
    services.disk_space.look()
    services.crash_guard.started(was_clean=logs.was_clean)
    services.intake.look()
    _check_kind(services)
    _load(services)


def let_go(services: Services) -> None:
    """Lets others have the directory after a start that ended with an error that says what to do:
    that is no crash. Blocks.
    """
    services.crash_guard.refused()
    services.logs.release()


def _check_kind(services: Services) -> None:
    """ConfigError for a directory of another kind of broker, before anything in it changes."""
    fleet_id = None if services.fleet is None else services.fleet.fleet_id
    check_mark(services.fs, services.log_dir, fleet_id, has_logs=services.logs.has_partitions())


def check_private(fs: FileSystem, directory: str) -> None:
    """ConfigError for a file of secrets that every user of this machine can read."""
    for name in SECRET_FILES:
        path = f"{directory}/{name}"
        if fs.exists(path) and fs.is_open_to_all(path):
            raise ConfigError(
                "log.dirs",
                f"every user of this machine can read or write {path}: chmod 600 {path}, and give "
                "its users other passwords",
            )


def _open_cache(cache: ObjectCache) -> None:
    """ConfigError for a place where the broker cannot make its directory, or that is another's."""
    try:
        cache.open()
    except DirectoryLocked as error:
        raise ConfigError(
            "horolog.tier.cache.dir",
            f"{error}: another broker has its cache there, give each a directory of its own "
            "(horolog.tier.cache.dir)",
        ) from error
    except DiskError as error:
        raise ConfigError(
            "horolog.tier.cache.dir",
            f"{error}: choose a directory that the broker may make and empty "
            "(horolog.tier.cache.dir)",
        ) from error


def _load(services: Services) -> None:
    logs = services.logs
    audit_file = services.config.broker_config.horolog_security_audit_file
    if audit_file:
        services.trail.use(AuditFile(audit_file))
    services.topics.restore_settings()
    services.quotas.load()
    check_private(services.fs, services.log_dir)
    services.users.load()
    services.tokens.load()
    if services.fleet is None:
        check_somebody_may_enter(services)
    services.authority.load()
    if services.tier is not None:
        _open_cache(services.tier.cache)
    logs.load()
    if logs.upgraded_segments:
        event("old_segments_upgraded", segments=logs.upgraded_segments, format=2)
    _tell_of_recovery(logs)
    services.topics.load(services.make_partition)
    services.producer_ids.load()


def _tell_of_recovery(logs: LogManager) -> None:
    """Tells what an unclean stop has cost, and which partitions take no writes because of it."""
    cut = logs.cut_bytes
    if logs.recovered_logs:
        event(
            "logs_recovered",
            "warning" if cut else "info",
            logs=logs.recovered_logs,
            cut_logs=len(cut),
            cut_bytes=cut.total(),
            most_cut=", ".join(name for name, _ in cut.most_common(3)),
        )
    for log in logs.logs.values():
        if log.fault is not None:
            name = partition_dir_name(log.topic, log.partition)
            event("log_damaged", "error", log=name, detail=log.fault)
