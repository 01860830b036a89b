"""python -m tests.again: failed tests that talk to other processes run twice more, by themselves.

Beside four others, on a machine of two cores, such a test may wait in vain for a client, a database
or a Java machine; one that is right passes when nothing else runs. Kafka's own build does likewise.
Whatever passed this way is named, for it is still to be made quieter. All of the rest stays failed:
tests in our own process, and failures in more than `MOST_MODULES`.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click

ROOT: Final = Path(__file__).resolve().parents[1]
FAILED: Final = ROOT / ".pytest_cache/v/cache/lastfailed"
TALKATIVE: Final = (
    "tests/integration/",
    "tests/conformance/",
    "tests/pipeline/",
    "tests/bench/",
)
"""Tests that wait for processes which are not ours."""
MOST_MODULES: Final = 3
TIMES: Final = 2
"""All of them must pass."""


def failed_tests(cache: Path) -> list[str]:
    """Ids of the tests that failed in the last run; none where nothing was kept."""
    return sorted(json.loads(cache.read_text())) if cache.exists() else []


def refusal(failed: Sequence[str]) -> str | None:
    """Why these are not run again; None when they are."""
    modules = {each.partition("::")[0] for each in failed}
    if not modules:
        return "no test is known to have failed"
    if len(modules) > MOST_MODULES:
        return f"tests of {len(modules)} modules failed: {MOST_MODULES} at most are run again"
    silent = sorted(each for each in modules if not each.startswith(TALKATIVE))
    if silent:
        return f"{silent[0]} waits for no other process: it is not run again"
    return None


def run_alone(failed: Sequence[str]) -> bool:
    """True when they pass, one by one."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *failed]
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode == 0


def look_again(failed: Sequence[str], run: Callable[[Sequence[str]], bool]) -> bool:
    """True when the tests may be run again, and pass each time."""
    why_not = refusal(failed)
    if why_not is not None:
        click.echo(f"not run again: {why_not}")
        return False
    if not all(run(failed) for _ in range(TIMES)):
        return False
    click.echo(f"failed beside others, and passed {TIMES} times by themselves:")
    for each in failed:
        click.echo(f"UNSTEADY {each}")
    return True


if __name__ == "__main__":
    sys.exit(not look_again(failed_tests(FAILED), run_alone))
