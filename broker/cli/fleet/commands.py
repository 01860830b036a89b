"""`horolog fleet`: nodes of a fleet, as its rows in PostgreSQL have them. No broker is asked."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from broker.cli.main import CommandFailed
from broker.runtime.exit_status import CORRUPT, NOT_USABLE

if TYPE_CHECKING:
    from broker.fleet.catalog.postgres import PostgresCatalog
    from broker.fleet.catalog.rows import NodeRow, ShardRow

T = TypeVar("T")

COLUMNS = ("node", "address", "version", ">life", ">shards", ">KB/s", ">clock ms", "state")
UNKNOWN_NODE = 1
STORE = "The fleet's object store, as its brokers' horolog.tier.url has it."


def at_url(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the option that names the database."""
    return click.option(
        "--url",
        required=True,
        envvar="HOROLOG_FLEET_URL",
        show_envvar=True,
        help="The database, as horolog.fleet.url has it.",
    )(command)


def with_store(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options that name the object store, with this help."""

    def added(command: Callable[..., Any]) -> Callable[..., Any]:
        allow_http = click.option(
            "--allow-http", is_flag=True, help="As horolog.tier.allow.http: without TLS, too."
        )
        place = click.option("--store", "place", metavar="URL", required=True, help=help_text)
        return place(allow_http(command))

    return added


def with_directory(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the option that names a data directory, with this help."""
    return click.option("--data-dir", "directory", metavar="DIR", required=True, help=help_text)


@click.group("fleet", no_args_is_help=False)
def command() -> None:
    """Show and change the nodes of a fleet, in the rows that they agree by.

    The password comes from the file that PGPASSFILE names, or from PGPASSWORD.
    """


@command.command("migrate", short_help="Make this version's tables and functions.")
@at_url
@click.option("--cluster-id", default="", help="Of a new fleet; random when it is not given.")
def migrate(url: str, cluster_id: str) -> int:
    """Bring the database up to this version, as the owner of its tables.

    A broker does that itself at its start, where its role may. What is there stays: brokers of the
    version before go on. Asked again it does nothing.
    """
    from broker.fleet.catalog.schema import NewFleet
    from broker.fleet.catalog.schema import migrate as make
    from storage.files.meta_properties import kafka_uuid
    from storage.posix import real_env

    rng = real_env().rng
    new = NewFleet(rng.uuid(), cluster_id or kafka_uuid(rng.uuid()))
    steps = _run(lambda: make(_checked(url), new))
    for each in steps:
        click.echo(f"{each} was made")
    if not steps:
        click.echo("nothing was to be done")
    return 0


@command.command("status", short_help="Show the nodes and what they own.")
@at_url
def status(url: str) -> int:
    """Show each node that ever lived: its address, version, number of its life, and its shards.

    A shard is some partitions that have one owner. One without a living owner is taken over within
    moments of the end of a lease; longer than that, no node can: see the log of the brokers.
    KB/s is what its shards took from producers in the last minute or so; clock ms, by how much its
    clock is ahead of PostgreSQL's.
    """
    from broker.cli.tables import TablePage

    nodes, shards = _run(lambda: _with_catalog(url, _looked, only_reads=True))
    page = TablePage()
    page.table(COLUMNS, (_row(each, shards) for each in nodes))
    living = {each.incarnation for each in nodes if not each.is_fenced}
    unowned = sum(each.owner not in living for each in shards)
    page.line(f"{len(shards)} shards, {unowned} without an owner that lives.")
    return 0


@command.command("drain", short_help="Have a node give its shards away.")
@at_url
@click.option("--undo", is_flag=True, help="It may have shards again.")
@click.argument("node_id", type=int)
def drain(url: str, node_id: int, *, undo: bool) -> int:
    """Have a node give all its shards to the others, and get none until --undo.

    It goes on serving clients as one that leads nothing. A broker that stops gives its shards away
    by itself: this is for one that is to run on.
    """

    async def note(catalog: "PostgresCatalog") -> bool:
        return await catalog.drain(node_id, draining=not undo)

    if not _run(lambda: _with_catalog(url, note)):
        raise CommandFailed(f"no node {node_id} was ever in this fleet", UNKNOWN_NODE)
    click.echo(f"node {node_id} " + ("may have shards again" if undo else "gives its shards away"))
    return 0


@command.command("verify", short_help="Prove that a fleet has all that is committed.")
@at_url
@with_store(STORE)
@click.argument("topic", required=False)
@click.option("--deep", is_flag=True, help="Read all commits and objects, compare checksums.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(
    url: str, place: str, topic: str | None, *, allow_http: bool, deep: bool, as_json: bool
) -> int:
    """Prove that database and store have all that is committed, of all topics or of TOPIC.

    Each manifest that the rows name can be read, its segments are there and have their sizes, and
    so do the objects of commits; together they have every offset from the log start to the end.
    With --deep all bytes are read and their checksums compared. Nothing is changed, no broker is
    asked, and all may be at work.

    Exit status: 0 when everything is whole, 3 when something is not, 2 when the database or the
    store cannot be read.
    """
    from broker.access.store.refusals import TierRefused
    from broker.cli.fleet.verifying import show, show_json, verified
    from storage.errors import StorageError

    try:
        done = _run(lambda: verified(_checked(url), place, topic, deep=deep, allow_http=allow_http))
    except (TierRefused, StorageError) as error:
        raise CommandFailed(str(error), NOT_USABLE) from error
    if topic is not None and not done:
        raise CommandFailed(f"the fleet has no topic {topic}", NOT_USABLE)
    (show_json if as_json else show)(done, deep=deep)
    return CORRUPT if any(each.findings for each in done) else 0


@command.command("export", short_help="Make a data directory of all that a fleet has.")
@at_url
@with_store(STORE)
@with_directory("Directory to make; empty if it is there.")
def export(url: str, place: str, directory: str, *, allow_http: bool) -> int:
    """Make a data directory of all topics, records, groups, settings, users and ACLs of a fleet.

    It is a back-up, and the way back to one broker: `horolog serve --data-dir DIR` without
    horolog.fleet.url has what the fleet had, with the same ids and offsets. The brokers are not
    asked, and may run: each partition is as of one moment, those of groups first. For the way back
    stop them before. Nothing is changed in the database and in the store.

    One that was cut off leaves a DIR on which no broker starts: run it once more. Exit status: 0,
    2 when the database, the store or DIR cannot be used, 3 when what they have cannot be read.
    """
    from broker.access.store.refusals import TierRefused
    from broker.cli.fleet.exporting import exported
    from broker.fleet.frame import CorruptFrame
    from storage.errors import CorruptCheckpoint, CorruptLog, StorageError

    try:
        done = _run(lambda: exported(_checked(url), place, directory, allow_http=allow_http))
    except (CorruptCheckpoint, CorruptLog, CorruptFrame) as error:
        raise CommandFailed(str(error), CORRUPT) from error
    except (TierRefused, StorageError) as error:
        raise CommandFailed(str(error), NOT_USABLE) from error
    click.echo(
        f"{directory} has {done.partitions} partitions of {done.topics} topics, "
        f"with offsets up to {done.records_end} in all"
    )
    return 0


@command.command("import", short_help="Bring the data directory of one broker into a new fleet.")
@at_url
@with_store("The fleet's object store, as its brokers' horolog.tier.url will have it.")
@with_directory("Directory of a Horolog or a Kafka that stood alone, and is stopped.")
def import_(url: str, place: str, directory: str, *, allow_http: bool) -> int:
    """Bring all that one broker has into a fleet that has nothing, and of which no node lives.

    Topics with their ids, records and offsets, groups, settings, users, ACLs and quotas. Records
    are copied to the store; at the end one statement has them all count, so one that was cut off
    is run once more. A database without tables gets them, and the fleet the cluster id of DIR. DIR
    stays what it is, but the fleet's nodes have directories of their own.

    Refused: a directory with an open transaction (start its broker, and let it end), or of which a
    part is in a tier; a fleet with settings, users, ACLs or quotas of its own. Exit status: 0, 2
    when the database, the store or DIR cannot be used.
    """
    from broker.access.store.refusals import TierRefused
    from broker.cli.fleet.exporting import imported
    from config.errors import ConfigError
    from storage.errors import StorageError

    try:
        answer, count = _run(
            lambda: imported(_checked(url), place, directory, allow_http=allow_http)
        )
    except (TierRefused, StorageError, ConfigError) as error:
        raise CommandFailed(str(error), NOT_USABLE) from error
    if answer in {"taken", "alive"}:
        why = "it has topics" if answer == "taken" else "a node of it lives"
        raise CommandFailed(f"the fleet is not empty: {why}", NOT_USABLE)
    click.echo(f"the fleet has {count} partitions of {directory}; its nodes may start")
    return 0


async def _looked(catalog: "PostgresCatalog") -> "tuple[Sequence[NodeRow], Sequence[ShardRow]]":
    return await catalog.nodes(), await catalog.shards()


async def _with_catalog(
    url: str,
    work: "Callable[[PostgresCatalog], Coroutine[Any, Any, T]]",
    *,
    only_reads: bool = False,
) -> T:
    from broker.fleet.catalog.postgres import PostgresCatalog

    catalog = PostgresCatalog(_checked(url), only_reads=only_reads)
    try:
        return await work(catalog)
    finally:
        await catalog.close()


def _run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Result of a coroutine; what the catalog refuses ends the command with its reason."""
    from broker.fleet.catalog.port import CatalogError

    try:
        return asyncio.run(work())
    except CatalogError as error:
        raise CommandFailed(f"{error}: is that the URL of the fleet?", NOT_USABLE) from error


def _checked(url: str) -> str:
    from config.fleet.url import OptionalCatalogUrl

    try:
        return str(OptionalCatalogUrl().parse(url) or "")
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--url") from error


def _row(node: "NodeRow", shards: Sequence["ShardRow"]) -> Sequence[str]:
    state = "lives"
    if node.is_fenced:
        state = "is gone"
    elif node.is_draining:
        state = "gives its shards away"
    node_id, life = node.incarnation
    host, port = node.address
    loads = [each.load for each in shards if each.owner == node.incarnation]
    counts = str(life), str(len(loads)), str(sum(loads) // 1000)
    ahead = "" if node.ahead_ms is None or node.is_fenced else f"{node.ahead_ms:+}"
    return str(node_id), f"{host}:{port}", node.version, *counts, ahead, state
