"""Our broker as a user runs it: a process of its own, started through its command line."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.worlds.node_process import NodeProcess

HOROLOG = Path(sys.executable).parent / "horolog"
KEPT_FROM_IT = ("HOROLOG_", "KAFKA_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")


def start_broker(
    data_dir: Path,
    settings: Mapping[str, str] | None = None,
    *,
    listen: str = "127.0.0.1:0",
    log: Path | None = None,
    ready_within_seconds: float = 60,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    within: Sequence[str] = (),
) -> NodeProcess:
    """A running broker on `data_dir`; `settings` are given as `--set key=value`.

    `options` are further ones of the command line, `environment` further variables, `within` words
    before the command that become it.

    Its log goes beside the data directory unless `log` names another file. Settings in our own
    environment do not reach it; the variables that steer tests would be refused as unknown ones.
    Half of a start is compiling where bytecode is not kept.
    """
    command = [*within, str(HOROLOG), "serve", "--data-dir", str(data_dir)]
    command += ["--listen", listen, "--http", "127.0.0.1:0", *options]
    for key, value in (settings or {}).items():
        command += ["--set", f"{key}={value}"]
    data_dir.mkdir(parents=True, exist_ok=True)
    beside = data_dir.with_name(f"{data_dir.name}.log")
    return NodeProcess(
        command,
        log or beside,
        ready_within_seconds=ready_within_seconds,
        environment={**own_environment(), **(environment or {})},
    )


def own_environment() -> dict[str, str]:
    """Ours without what steers tests; it keeps its bytecode, as an installed one does."""
    return {k: v for k, v in os.environ.items() if not k.startswith(KEPT_FROM_IT)}
