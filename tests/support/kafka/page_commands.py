"""Commands of a page of the docs, run in a shell as a reader would, with Kafka's own tools."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.kafka.kafka_oracle import SCRIPT
from tests.support.worlds.broker_process import HOROLOG

ROOT = Path(__file__).resolve().parents[3]


def blocks_of(page: str, test: str) -> list[str]:
    """Blocks of docs/tasks/<page> that are marked as executed by tests/conformance/<test>."""
    marked = rf"<!-- executed by tests/conformance/{re.escape(test)} -->\n```sh\n(.*?)```"
    return re.findall(marked, (ROOT / "docs" / "tasks" / page).read_text(), re.DOTALL)


def place_with(tools: Mapping[str, str], folder: Path) -> Path:
    """An empty directory; beside it, horolog and Kafka's tools, by the names that pages use."""
    commands = folder / "bin"
    commands.mkdir()
    (commands / "horolog").symlink_to(HOROLOG)
    for name, tool in tools.items():
        wrapper = commands / name
        wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} {SCRIPT} tool {tool} "$@"\n')
        wrapper.chmod(0o755)
    (folder / "work").mkdir()
    return folder / "work"


def run(block: str, place: Path, environment: Mapping[str, str], seconds: float) -> str:
    """Output of the block's commands; a bad exit code fails with all of it."""
    path = f"{place.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-euc", block], cwd=place, capture_output=True, text=True, check=False,
        timeout=seconds, env={**environment, "PATH": path}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, f"{block}: {done.stdout}\n{done.stderr}"
    return done.stdout
