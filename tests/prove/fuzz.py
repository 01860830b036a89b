"""Coverage-guided fuzzing of every decoder, record walker and file that is read at a start.

Walkers run from their source here, so that their branches are seen; `sanitizers` runs what was kept
of the inputs through compiled ones. A point is a second of CPU.
"""

import importlib.util
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import NamedTuple

from tests.fuzz.seeds import write_seeds
from tests.fuzz.targets import SINGLE
from tests.prove import Outcome, Work, spread
from tests.prove.copies import copy_tree

SLICE_SECONDS = 12
SLOW_INPUT_SECONDS = 5
MOST_MIB, MOST_INPUT_BYTES = 2048, 4096
EXECUTED = re.compile(r"stat::number_of_executed_units: (\d+)")


class Fuzzed(NamedTuple):
    """What the fuzzing of one target came to."""

    tried: int
    """Inputs."""
    cpu_seconds: float
    finding: str | None


def one_target(tree: Path, seconds: int, seed: int, name: str) -> Fuzzed:
    """Fuzz one for so long."""
    corpus, found = tree / "corpus" / name, tree / "found" / name
    write_seeds(name, corpus)
    found.mkdir(parents=True)
    command = [
        sys.executable, "-m", "tests.fuzz", name, str(corpus), f"-max_total_time={seconds}",
        f"-seed={seed + 1}", f"-artifact_prefix={found}/", f"-timeout={SLOW_INPUT_SECONDS}",
        f"-rss_limit_mb={MOST_MIB}", f"-max_len={MOST_INPUT_BYTES}", "-print_final_stats=1",
    ]  # fmt: skip
    before = getrusage(RUSAGE_CHILDREN)
    ran = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    after = getrusage(RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    executed = EXECUTED.search(ran.stderr)
    tried = int(executed[1]) if executed else 0
    if ran.returncode == 0 and tried:
        return Fuzzed(tried, spent, None)
    inputs = [path.read_bytes()[:200].hex() for path in found.iterdir()]
    told = told_of(ran.stderr + ran.stdout)
    return Fuzzed(tried, spent, f"{name}, input {inputs}: {told}")


def told_of(output: str) -> str:
    """The lines that say what went wrong."""
    lines = output.splitlines()
    first = next((at for at, line in enumerate(lines) if "Uncaught" in line or "ERROR" in line), 0)
    return " | ".join(lines[first : first + 14])


def prove(work: Work) -> Outcome:
    """Every target for an equal share of the seconds; the slice: all of them in one process."""
    if importlib.util.find_spec("atheris") is None:
        return Outcome(0, "CPU seconds", skipped="atheris is not installed")
    names = tuple(SINGLE) if work.points else ("everything",)
    share = max(1, work.wanted(SLICE_SECONDS) // len(names))
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree, compiled=False)
        results = list(spread(work, partial(one_target, tree, share, work.seed), names))
    findings = tuple(each.finding for each in results if each.finding is not None)
    note = f"{len(SINGLE)} targets, {sum(each.tried for each in results)} inputs"
    spent = round(sum(each.cpu_seconds for each in results))
    return Outcome(spent, "CPU seconds", str(work.seed), findings, note=note)
