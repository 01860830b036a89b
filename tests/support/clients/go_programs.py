"""Programs written in Go, for tests: built once from a folder, kept in `.cache/go`.

Modules are fetched at the versions of go.mod and checked against go.sum. The program is stored
under the digest of its sources, put there in one rename.
"""

import functools
import hashlib
import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

from tests.support.clients.made_once import made_once

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "go"
USUAL_PLACE = Path("/usr/local/go/bin/go")
NEEDED = (1, 26)  # by the modules in go.mod
BUILD_SECONDS = 600
QUICK_BUILD = "-gcflags=all=-N -l"  # a third less time; nobody waits for these programs


@functools.cache
def go() -> str | None:
    """The Go command, None when there is none on this machine, or one from before `NEEDED`."""
    command = shutil.which("go") or (str(USUAL_PLACE) if USUAL_PLACE.exists() else None)
    if command is None:
        return None
    told = subprocess.run(
        [command, "env", "GOVERSION"], capture_output=True, text=True, check=False
    ).stdout
    found = re.match(r"go(\d+)\.(\d+)", told)
    return command if found and tuple(map(int, found.groups())) >= NEEDED else None


def built_program(folder: Path, package: str = ".") -> Path:
    """The program that the module in `folder` is; an unhappy build fails with all it said.

    `package`: one of the modules that it requires, in place of its own.
    """
    sources = sorted([*folder.glob("*.go"), folder / "go.mod", folder / "go.sum"])
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()
    return made_once(CACHE / digest[:16], partial(_built, folder, package))


def _built(folder: Path, package: str, scratch: Path) -> Path:
    program = scratch / "program"
    command = go()
    assert command is not None, "there is no Go on this machine"
    done = subprocess.run(
        [command, "build", "-mod=readonly", "-buildvcs=false", QUICK_BUILD, "-o", program, package],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=BUILD_SECONDS, cwd=folder, env={**os.environ, "GOTOOLCHAIN": "local"},
    )  # fmt: skip
    assert done.returncode == 0, f"go build: {done.stdout}\n{done.stderr}"
    return program
