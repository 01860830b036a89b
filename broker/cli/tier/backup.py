"""`horolog backup`: a data directory copied to a directory or an object store, as a tier has it.

The work is `storage.backup`'s; here the place is opened, progress shown, and said what was sent and
what the back-up has.
"""

import time
from typing import TYPE_CHECKING

import click

from broker.cli.tier.backed_up import print_backup, print_json
from broker.cli.tier.partition_bar import partition_bar
from broker.cli.tier.places import place_to_write
from broker.runtime.exit_status import CORRUPT, NOT_USABLE
from config.quantities import parse_duration, parse_quantity, size

if TYPE_CHECKING:
    from broker.cli.tier.partition_bar import PartitionBar
    from storage.backup.run import BackupOrder, BackupProgress
    from storage.backup.sweep import SweepLimits
    from storage.env import Env
    from storage.tier.cluster_picture import Files

DAY_MS = 86_400_000
LEAST_RATE = 1024
"""Bytes a second; with fewer a run would be out of date before it ends."""


def _duration(_: click.Context, parameter: click.Parameter, text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None


def _rate(_: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        rate = parse_quantity(text, "bytes")
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None
    if rate < LEAST_RATE:
        raise click.BadParameter(f"{text}: at least {size(LEAST_RATE)}", param=parameter)
    return rate


@click.command("backup", short_help="Copy a data directory to a directory or an object store.")
@click.option(
    "--to", "place", metavar="PLACE", required=True,
    help="Place of the back-up: s3://bucket/prefix, with credentials from AWS_…; or a directory.",
)  # fmt: skip
@click.option(
    "--data-dir", "directory", metavar="DIR", required=True,
    help="Data directory, of a broker that runs or not. It may be mounted for reading only.",
)  # fmt: skip
@click.option(
    "--keep", "keep_ms", metavar="DURATION", default="7d", show_default=True, callback=_duration,
    help="How far back restore --at can go. What older back-ups alone need is removed.",
)  # fmt: skip
@click.option(
    "--max-rate", "bytes_per_second", metavar="SIZE", callback=_rate,
    help="Most bytes that are sent in a second, as in 20MB: producers share the disk and the line.",
)  # fmt: skip
@click.option("--without-users", is_flag=True, help="Leave out what log-ins are compared with.")
@click.option("--allow-http", is_flag=True, help="As horolog.tier.allow.http: without TLS, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    place: str, directory: str, *, keep_ms: int, bytes_per_second: int | None,
    without_users: bool, allow_http: bool, as_json: bool,
) -> int:  # fmt: skip
    """Copy a data directory to another directory or an object store, for horolog restore.

    Topics, settings, quotas, ACLs, users, committed offsets, transactions and the records of all
    partitions, up to where each log is on the disk and no transaction is open. Nothing in DIR is
    changed and no lock is taken, so a broker may be at work. The first run copies everything, later
    ones what is new since; of what goes up, all is read back and compared. Not copied: delegation
    tokens, and stored passwords and private keys.

    A run that was cut off changes nothing of the back-up before it; the next one goes on with what
    was sent. A broker with a tier has its back-up there: topics of which the store alone has a part
    are refused.

    Exit status: 0; 2 when DIR or PLACE cannot be used, or another cluster's back-up is there; 3
    when a log is damaged: the others are backed up, of this one the copy from before stays.
    """
    from broker.access.store.refusals import TierRefused
    from storage.backup.run import back_up
    from storage.backup.sweep import sweep
    from storage.errors import StorageError
    from storage.posix import real_env

    env = real_env()
    try:
        with place_to_write(env, place, directory, allow_http=allow_http) as store:
            with partition_bar() as bar:
                order = _order(env, directory, _progress(bar), without_users=without_users)
                done = back_up(env, store, _paced(order, bytes_per_second))
            swept = sweep(store, order.partitions_of, _limits(env, keep_ms))
    except (TierRefused, StorageError) as error:
        click.echo(f"horolog backup: {error}", err=True)
        return NOT_USABLE
    (print_json if as_json else print_backup)(done, swept)
    return CORRUPT if any(each.damage for each in done.partitions) else 0


def _order(
    env: "Env", directory: str, progress: "BackupProgress", *, without_users: bool
) -> "BackupOrder":
    from broker.topics.stored_settings import without_secrets
    from storage.backup.run import BackupOrder
    from storage.directory.topics_file import partitions_in
    from storage.tier.cluster_picture import FILES, USERS_FILE, read_files

    log_dir = directory.rstrip("/") or "/"
    names = FILES if without_users else (*FILES, USERS_FILE)

    def files() -> "Files":
        return read_files(env.fs, log_dir, without_secrets, names)

    return BackupOrder(log_dir, files, partitions_in, progress, pause=time.sleep)


def _paced(order: "BackupOrder", bytes_per_second: int | None) -> "BackupOrder":
    from broker.tier.pace import Pace

    if bytes_per_second is None:
        return order
    return order._replace(pace=Pace(lambda: bytes_per_second))


def _limits(env: "Env", keep_ms: int) -> "SweepLimits":
    from storage.backup.sweep import SweepLimits

    now_ms = env.clock.now_ms()
    return SweepLimits(now_ms - keep_ms, now_ms - DAY_MS)


def _progress(bar: "PartitionBar | None") -> "BackupProgress":
    from storage.backup.run import BackupProgress

    if bar is None:
        return BackupProgress()
    return BackupProgress(bar.partitions, bar.partition)
