"""Makes things that take long once, and keeps them in a folder of `.cache`, put there in one
rename.
"""

import fcntl
import tempfile
from collections.abc import Callable
from pathlib import Path


def made_once(target: Path, make: Callable[[Path], Path]) -> Path:
    """`target`; where it is not there, `make` puts it somewhere in a scratch folder and says where.

    One process at a time makes anything beside `target`.
    """
    folder = target.parent
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                make(Path(scratch)).rename(target)
    return target
