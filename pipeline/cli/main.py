"""`horolog spark JOB …`: the jobs, one module each in `pipeline/jobs`, loaded on use.

`horolog` knows this module by name only and loads it with the command, so a broker starts without
it. Nothing here, nor a job's module, loads Spark before the job runs.
"""

import os
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

import click

from pipeline.cli.quick_import import loading
from pipeline.engine.worker_memory import POOL, WORKER_MEMORY
from pipeline.errors import PipelineError

JOBS: Mapping[str, str] = MappingProxyType({
    "pinned": "pipeline.jobs.pinned",
    "verify": "pipeline.jobs.verify",
    "audit-time": "pipeline.jobs.audit_time",
    "latency": "pipeline.jobs.latency",
    "lag": "pipeline.jobs.lag",
    "failover": "pipeline.jobs.failover",
    "reindex": "pipeline.jobs.reindex",
    "compact-plan": "pipeline.jobs.compact_plan",
    "compact-check": "pipeline.jobs.compact_check",
    "sql": "pipeline.jobs.sql",
    "replay": "pipeline.jobs.replay",
    "archive": "pipeline.jobs.archive",
    "compact": "pipeline.jobs.compact",
})  # fmt: skip
"""Module of each job; it has the job as `command`."""


_FOR_LIBRARIES: Mapping[str, str] = MappingProxyType({
    "OPENBLAS_NUM_THREADS": "1",  # they spin for a tenth of a second, and nothing is multiplied
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # of an allocator that is not used
    POOL: WORKER_MEMORY[POOL],
})  # fmt: skip
"""Variables that libraries read when they are loaded; the user's own settings stay."""


class JobFailed(click.ClickException):
    """A job that ended with an error of ours; its exit status says of which kind."""

    def __init__(self, error: PipelineError) -> None:
        """One line on standard error."""
        super().__init__(error.message)
        self.exit_code = error.EXIT_STATUS  # type: ignore[misc]  # of this error alone


class Jobs(click.Group):
    """Jobs whose modules are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the table."""
        return list(JOBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The job; a name that is none of ours is a mistake of the user."""
        if cmd_name not in JOBS:
            ctx.fail(f"there is no job {cmd_name!r}; jobs are: {', '.join(JOBS)}")
        for name, value in _FOR_LIBRARIES.items():
            os.environ.setdefault(name, value)
        with loading():
            command: click.Command = import_module(JOBS[cmd_name]).command
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Runs the job; our own errors end in one line. Raises JobFailed."""
        try:
            return super().invoke(ctx)
        except PipelineError as error:
            raise JobFailed(error) from error


@click.group(
    "spark",
    cls=Jobs,
    no_args_is_help=False,
    short_help="Run jobs over whole topics, on Spark or without it.",
)
def command() -> None:
    """Run a job over whole topics, on Spark or without it.

    Needs no set-up: Spark runs inside the command, on all cores. horolog spark JOB --help shows the
    options of a job.
    """
