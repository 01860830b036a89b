"""Tools written in Python that must not share our environment: installed once, in `.cache/python`.

Each has a virtual environment of its own under its name and version, put there in one rename.
"""

import subprocess
import sys
from pathlib import Path

from tests.support.clients.made_once import made_once

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "python"
INSTALL_SECONDS = 300


def python_with(package: str, version: str) -> Path:
    """The interpreter of an environment that has this package; an unhappy pip fails as it says."""
    target = CACHE / f"{package}-{version}"
    made = made_once(target, lambda scratch: _installed(f"{package}=={version}", scratch / "made"))
    return made / "bin" / "python"


def _installed(requirement: str, place: Path) -> Path:
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    for command in ([sys.executable, "-m", "venv", str(place)], [*pip, requirement]):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=INSTALL_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return place
