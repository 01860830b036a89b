"""The folder of this user for what can be made again at any time."""

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """`horolog` in the user's cache folder. It need not exist, nor be writable."""
    above = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(above) / "horolog"


def publish(content: bytes, place: Path, mode: int = 0o644) -> None:
    """Write a file of that name whole or not at all, and the folders above it. OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as staged:
        staged.write(content)
        staged.flush()
        os.fsync(staged.fileno())
    Path(staged.name).chmod(mode)
    Path(staged.name).replace(place)
