"""Planted faults: each one-line fault of `mutants.toml` must make one of its tests fail.

A fault that no test notices is a hole. The tests run on a copy of the tree in which one line is
wrong; before that, on the copy as it is, so that a test that always fails proves nothing.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.prove import Outcome, Work, spread
from tests.prove.copies import copy_tree

LIST = Path(__file__).with_name("mutants.toml")
SLICE_MUTANTS = 4
MOST_SECONDS = 300
PASSED, FAILED = 0, 1  # exit codes of pytest; others mean that nothing was judged


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted fault."""

    name: str
    """What the faulty code does."""
    file: str
    before: str
    """Occurs once in the file."""
    after: str
    caught_by: tuple[str, ...]
    """Arguments of pytest: what is to notice it."""
    proof: str = ""
    """The proof that finds it, too, without being told: the tests run lives or cases of it."""

    def plant(self, tree: Path) -> None:
        """Change the file of that tree. AssertionError when the text is not there once."""
        path = tree / self.file
        source = path.read_text()
        assert source.count(self.before) == 1, f"{self.name}: not once in {self.file}"
        path.write_text(source.replace(self.before, self.after))


def listed() -> list[Mutant]:
    """All of them, in the order of the list."""
    rows = tomllib.loads(LIST.read_text())["mutant"]
    return [Mutant(**{**row, "caught_by": tuple(row["caught_by"])}) for row in rows]


def fails(tree: Path, tests: tuple[str, ...]) -> bool | None:
    """Whether one of the tests fails there; None when they could not be run."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly"]
    command += ["-p", "no:cacheprovider", "--timeout", str(MOST_SECONDS), *tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    code = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, check=False
    ).returncode
    return {PASSED: False, FAILED: True}.get(code)


def judge(mutant: Mutant) -> str | None:
    """What is wrong with the tests that are to catch it; None if they do."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree, compiled=True)
        if fails(tree, mutant.caught_by) is not False:
            return f"{mutant.name}: its tests fail without it, too"
        mutant.plant(tree)
        match fails(tree, mutant.caught_by):
            case True:
                return None
            case False:
                return f"{mutant.name}: nobody notices ({mutant.file})"
            case None:
                return f"{mutant.name}: its tests cannot be run with it"


def prove(work: Work) -> Outcome:
    """So many faults of the list, evenly spread over it, from number `seed` on."""
    everything = listed()
    wanted = min(work.wanted(SLICE_MUTANTS), len(everything))
    numbers = [work.seed + index * len(everything) // wanted for index in range(wanted)]
    chosen = [everything[number % len(everything)] for number in numbers]
    findings = [found for found in spread(work, judge, chosen) if found is not None]
    note = f"{len(everything)} listed"
    return Outcome(wanted, "planted faults", f"{work.seed}", tuple(findings), note=note)
