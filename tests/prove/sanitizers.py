"""The compiled record walkers, built with address and undefined-behaviour sanitizers, at work.

In a copy of the tree: their property tests and unit tests, and every seed and kept input of the
fuzzer. A report of a sanitizer ends the process, so a test that passes had none. A point is a test
or an input.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.prove import Outcome, Work
from tests.prove.copies import copy_tree

SANITIZED = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -O1 -g"
RUNTIMES = ("libasan.so", "libubsan.so")
SLICE_TESTS = ("tests/property/test_fuzz_seeds.py", "tests/property/test_records_walkers.py")
ALL_TESTS = (
    *SLICE_TESTS,
    "tests/property/test_column_walkers.py",
    "tests/property/test_compact_walkers.py",
    "tests/property/test_conversion_walkers.py",
    "tests/property/test_encode_walkers.py",
    "tests/property/test_gap_walkers.py",
    "tests/property/test_mistimed_walkers.py",
    "tests/property/test_records_bytes.py",
    "tests/property/test_legacy_bytes.py",
    "tests/unit/protocol/records",
)
INPUTS = """
from tests.fuzz.seeds import seeds_of
from tests.fuzz.targets import TARGETS
print(sum(1 for name in TARGETS for _ in seeds_of(name)))
"""
NOT_FOR_THEM = "not behind_pythons_back"  # measures memory, of which the sanitizers take their own
PASSED = re.compile(r"(\d+) passed")
REPORT = re.compile(r"ERROR: AddressSanitizer|runtime error:")


def runtimes(compiler: str) -> list[str] | None:
    """The libraries to load before Python; None where one is missing."""
    found = []
    for name in RUNTIMES:
        told = subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False
        )
        path = told.stdout.strip()
        if not os.path.isabs(path):
            return None
        found.append(path)
    return found


def prove(work: Work) -> Outcome:
    """The slice: walks over batches, and the inputs of the fuzzer; with points, all tests."""
    compiler = shutil.which("gcc")
    libraries = runtimes(compiler) if compiler else None
    if libraries is None:
        return Outcome(0, "tests and inputs", skipped="no gcc with libasan and libubsan")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree, compiled=False)
        built = build(tree)
        if built:
            return Outcome(0, "tests and inputs", findings=(f"the build: {built}",))
        return run(tree, libraries, SLICE_TESTS if work.points is None else ALL_TESTS)


def build(tree: Path) -> str:
    """Compile the walkers there; what went wrong, or nothing."""
    ran = subprocess.run(
        [sys.executable, "scripts/compile"], cwd=tree, capture_output=True, text=True, check=False,
        env={**os.environ, "CC": "gcc", "CFLAGS": SANITIZED, "LDFLAGS": SANITIZED},
    )  # fmt: skip
    return ran.stderr.strip()


def run(tree: Path, libraries: list[str], tests: tuple[str, ...]) -> Outcome:
    """Those tests with those walkers."""
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",
    }

    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True,
            text=True, errors="replace", check=False,
        )  # fmt: skip

    inputs = python("-c", INPUTS)
    options = ("-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", "-k", NOT_FOR_THEM)
    ran = python("-m", "pytest", *options, *tests)
    told = ran.stdout + ran.stderr
    passed = PASSED.search(told)
    count = int(passed[1]) if passed else 0
    count += int(inputs.stdout) if inputs.returncode == 0 else 0
    findings = () if ran.returncode == 0 and count else (what_happened(told),)
    return Outcome(count, "tests and inputs", findings=findings, note=f"{len(tests)} files")


def what_happened(output: str) -> str:
    """The report of the sanitizer, or the end of the output."""
    report = REPORT.search(output)
    return output[report.start() :][:3000] if report else output[-3000:]
