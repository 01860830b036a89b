"""Tools written in Python that must not share our environment: installed once, in `.cache/python`.

Each has a virtual environment of its own under its name and version, put there in one rename.
"""

import fcntl
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "python"
INSTALL_SECONDS = 300


def python_with(package: str, version: str) -> Path:
    """The interpreter of an environment that has this package; an unhappy pip fails as it says."""
    target = CACHE / f"{package}-{version}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                _install(f"{package}=={version}", Path(scratch, "made"))
                Path(scratch, "made").rename(target)
    return target / "bin" / "python"


def _install(requirement: str, place: Path) -> None:
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for command in ([sys.executable, "-m", "venv", str(place)], [*pip, requirement]):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=INSTALL_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
