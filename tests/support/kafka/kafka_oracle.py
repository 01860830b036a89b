"""A real Apache Kafka for tests: the node, and the tools that judge files and protocol."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.support.worlds.node_process import NodeFailed, NodeProcess

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "kafka"
TOPICS_TOOL = "org.apache.kafka.tools.TopicCommand"
CONFIGS_TOOL = "kafka.admin.ConfigCommand"
OFFSETS_TOOL = "org.apache.kafka.tools.GetOffsetShell"
PORT_TRIES = 3
DUMP_TOOL = "org.apache.kafka.tools.DumpLogSegments"


def available() -> bool:
    """True when this machine has what a real Kafka needs."""
    return all(shutil.which(program) for program in ("java", "mvn"))


def start_kafka(
    data_dir: Path,
    settings: Mapping[str, str] | None = None,
    *,
    listen: str = "127.0.0.1:0",
    heap: str = "1g",
    ready_within_seconds: float = 180,
    classes: Path | None = None,
    within: Sequence[str] = (),
    is_short: bool = True,
) -> NodeProcess:
    """A running Kafka on `data_dir`, which is formatted when new; its log is beside it.

    `classes`: a directory of plug-ins that `settings` name. `within`: words before the command that
    become it. `is_short`: it starts in half the time; who measures its speed says False.

    A free port is chosen seconds before Kafka takes it: where another program was faster, again.
    """
    log = data_dir.with_name(f"{data_dir.name}.log")
    command = [*within, sys.executable, str(SCRIPT), "start", "--data-dir", str(data_dir)]
    command += ["--listen", listen, "--heap", heap, "--log", str(log)]
    if is_short:
        command.append("--short")
    if classes is not None:
        command += ["--classes", str(classes)]
    command += [f"{key}={value}" for key, value in (settings or {}).items()]
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(PORT_TRIES - 1):
        try:
            return NodeProcess(command, log, ready_within_seconds=ready_within_seconds)
        except NodeFailed as failure:
            if "Address already in use" not in str(failure) or not listen.endswith(":0"):
                raise
    return NodeProcess(command, log, ready_within_seconds=ready_within_seconds)


full_kafka = partial(start_kafka, is_short=False)
"""A Kafka whose speed is measured: its virtual machine has the options of Kafka's own script."""


def run_tool(tool: str, *arguments: str) -> str:
    """Output of one of Kafka's tools; a bad exit code fails with all of it."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "tool", tool, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, f"{tool} {arguments}: {done.stdout}\n{done.stderr}"
    return done.stdout
