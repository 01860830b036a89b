"""`horolog restore`: a data directory out of a tier's object store or a back-up alone.

The work is `storage.tier.restore`'s; here the store is opened, progress shown, and said what came
back, how old it is and what did not.
"""

import json
from typing import TYPE_CHECKING

import click

from broker.cli.tier.partition_bar import partition_bar, progress_of
from broker.cli.tier.places import is_directory, place_to_read
from broker.cli.tier.restored import content_of, print_restored
from broker.runtime.exit_status import CORRUPT, NOT_USABLE
from config.quantities import parse_instant

if TYPE_CHECKING:
    from storage.env import Env
    from storage.tier.restore import Order, RestoreProgress


@click.command("restore", short_help="Make a data directory out of a back-up or a tier.")
@click.option(
    "--from", "url", metavar="PLACE", required=True,
    help="A tier or a back-up: s3://bucket/prefix, with credentials from AWS_…; or a back-up's "
    "directory.",
)  # fmt: skip
@click.option(
    "--data-dir", "directory", metavar="DIR", required=True,
    help="Directory to make; empty if it is there.",
)  # fmt: skip
@click.option(
    "--at", metavar="TIME",
    help="As of then: ISO-8601, ms since 1970, or -1h. Without it, the newest copy.",
)  # fmt: skip
@click.option(
    "--download", is_flag=True,
    help="Bring all segments at once: the directory then needs no store.",
)  # fmt: skip
@click.option("--allow-http", is_flag=True, help="As horolog.tier.allow.http: without TLS, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    url: str, directory: str, at: str | None, *, download: bool, allow_http: bool, as_json: bool
) -> int:
    """Make a data directory out of a tier's object store, or a back-up, alone.

    Topics, settings, quotas, ACLs and the logs of all partitions are as they were when they were
    copied last, or at TIME. Segments stay in the store and come when they are asked for; those of
    committed offsets and transactions come at once. What was not copied is lost: offsets behind
    the end are given out again, in a new leader epoch. Of a tier, topics without
    remote.storage.enable begin without records; of a back-up, the newest complete one counts, up
    to TIME.

    Of a tier, what retention or DeleteRecords removed since TIME is gone: its partitions begin
    later. Where compaction replaced segments since TIME, a partition is as of the first moment
    after TIME of which the store has everything. Both are listed. The store keeps what was removed
    or replaced for file.delete.delay.ms.

    Not in the store, so to be set again: delegation tokens, stored passwords and private keys; of a
    tier, users too.

    A directory's back-up always comes whole, as with --download. A broker that reads segments from
    a back-up's bucket has made its tier of it: the next back-up goes elsewhere, or use --download.

    The store is not changed. Stop the broker that writes to this tier before one starts on DIR: of
    two, one stops copying. After --at with a time before the newest copy, a broker on DIR does not
    copy to this tier, which has more than DIR; with --download, another horolog.tier.url takes all
    of it.

    A restore that was cut off leaves a DIR on which no broker starts: run it once more, it starts
    from the beginning. Exit status: 0, 2 when there is nothing to restore from or DIR cannot be
    used, 3 when something in the store is lost or changed.
    """
    from broker.access.store.refusals import TierRefused
    from storage.errors import CorruptCheckpoint, CorruptLog, StorageError
    from storage.posix import real_env
    from storage.tier.restore import restore

    env = real_env()
    try:
        store = place_to_read(env, url, allow_http=allow_http)
        with partition_bar() as bar:
            order = _order(
                env, directory, at, progress_of(bar), download=download or is_directory(url)
            )
            done = restore(env, store, order)
    except (TierRefused, StorageError) as error:
        click.echo(f"horolog restore: {error}", err=True)
        return CORRUPT if isinstance(error, CorruptCheckpoint | CorruptLog) else NOT_USABLE
    if as_json:
        click.echo(json.dumps(content_of(done)))
    else:
        print_restored(done, url, env.clock.now_ms())
    return 0


def _order(
    env: "Env", directory: str, at: str | None, progress: "RestoreProgress", *, download: bool
) -> "Order":
    from storage.directory.topics_file import partitions_in
    from storage.tier.restore import Order, stays_local

    is_local = (lambda _: True) if download else stays_local
    at_ms = None if at is None else _instant(at, env.clock.now_ms())
    return Order(directory.rstrip("/") or "/", partitions_in, at_ms, is_local, progress)


def _instant(at: str, now_ms: int) -> int:
    try:
        return parse_instant(at, now_ms)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--at") from None
