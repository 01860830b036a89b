"""`horolog bundle`: writes one archive of facts about a broker, for a support engineer."""

from datetime import UTC, datetime
from pathlib import Path

import click

from broker.cli.admin_client import AdminPort, live
from broker.cli.main import CommandFailed
from broker.runtime.exit_status import NOT_USABLE


@click.command("bundle", short_help="Write a support archive: no secrets, no records.")
@click.option(
    "--output", metavar="FILE", help="Archive to write (default horolog-bundle-TIME.tar.gz)."
)
@click.option("--config", "file", metavar="FILE", help="Settings file of the broker.")
@click.option("--log", metavar="FILE", help="Log file of the broker; its end is included.")
@click.option(
    "--data-dir", metavar="DIR", help="Data directory; names and sizes of its files only."
)
@live
def command(
    port: AdminPort,
    *,
    output: str | None,
    file: str | None,
    log: str | None,
    data_dir: str | None,
    as_json: bool,
) -> int:
    """Write one archive of facts about a broker, for a support engineer.

    From the running broker: settings with their sources, metrics, readiness, clock, topics, their
    segments with the reasons why they are still there, groups, clients with bad times, what the
    check for rot found. With --config, --log and --data-dir also the settings file, the end of the
    log and the names of the files. A broker that does not answer is left out.

    Never in it: keys, values and headers of records, tokens, passwords. Look through it all the
    same before you give it away: names of topics, groups and clients are in it.
    """
    from broker.cli.redaction import Redactor
    from broker.cli.support_bundle import add_facts, listing, log_tail, settings, written

    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = Path(output or f"horolog-bundle-{stamp}.tar.gz")
    try:
        with written(path, Redactor(port.secrets)) as bundle:
            add_facts(bundle, port)
            bundle.add("settings.txt", lambda: settings(file))
            if log is not None:
                bundle.add("log.txt", lambda: log_tail(log))
            if data_dir is not None:
                bundle.add("files.txt", lambda: listing(data_dir))
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror or error}", NOT_USABLE) from error
    if as_json:
        from broker.cli.support_bundle import as_json as rendered

        click.echo(rendered({"path": str(path), "files": bundle.files, "missing": bundle.missing}))
        return 0
    for each in bundle.missing:
        click.echo(f"missing: {each}", err=True)
    click.echo(f"{path}: {bundle.files} files")
    return 0
