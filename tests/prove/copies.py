"""A copy of the tree that may be changed: planted faults, walkers built in another way."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    "protocol",
    "storage",
    "config",
    "broker",
    "pipeline",
    "tests",
    "scripts",
    "pyproject.toml",
)


def copy_tree(folder: Path, *, compiled: bool) -> None:
    """Put the packages and tests into `folder`; without compiled walkers unless `compiled`."""
    left_out = shutil.ignore_patterns("__pycache__", *(() if compiled else ("*.so",)))
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=left_out)
        else:
            shutil.copy(source, folder / name)
