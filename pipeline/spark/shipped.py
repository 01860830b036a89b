"""Our own code for the executors of a cluster: one archive, which Spark sends along with the tasks.

It holds our packages as they are installed here, the compiled walkers among them, which another
version of Python passes over. What others have made (pyarrow, numpy and so on) must be on the
executors. An executor unpacks the archive in the directory that it runs in and hands its Python
workers that folder first, so they run the code of the driver even where Horolog is installed.
"""

import gzip
import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from sysconfig import get_config_var
from typing import TYPE_CHECKING

from pipeline.spark.cache_folder import cache_folder, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("broker.access", "config", "pipeline", "protocol", "storage")
FOLDER = "horolog-code"
"""Name of the unpacked archive in an executor's own directory."""
_PATH = "PYTHONPATH"


def ship(session: "SparkSession") -> None:
    """Send the code with all tasks of the session; nothing to do where they run on this machine.

    Neither `spark.archives` nor `spark.executorEnv.PYTHONPATH` of the user is replaced. A server of
    Spark Connect has to have Horolog installed.
    """
    from pyspark.sql.utils import is_remote

    if is_remote():
        return
    context = session.sparkContext
    known = context.environment.get(_PATH, "").split(os.pathsep)
    here = f"./{FOLDER}"
    if is_local(context.master or "") or here in known:
        return
    context.addArchive(f"{code_archive()}#{FOLDER}")
    context.environment[_PATH] = os.pathsep.join([here, *filter(None, known)])


def is_local(master: str) -> bool:
    """True when tasks run in the process of the driver, which `local-cluster` does not mean."""
    return master == "local" or master.startswith("local[")


def code_archive(folder: Path | None = None, packages: Sequence[str] = PACKAGES) -> Path:
    """The archive, kept in `folder` (default: the user's cache) under the sum of its content."""
    files = [(name, path.read_bytes()) for name, path in sorted(_files(packages))]
    total = hashlib.blake2b(digest_size=12)
    for name, content in files:
        total.update(b"%s\0%d\0" % (name.encode(), len(content)))
        total.update(content)
    name = f"{total.hexdigest()}.tar.gz"
    place = (folder or cache_folder() / "code") / name
    if not place.exists():
        packed = _packed(files)
        try:
            publish(packed, place)
        except OSError:  # no home, or a read-only one: this session's alone
            place = Path(tempfile.mkdtemp(prefix="horolog-code-")) / name
            publish(packed, place)
    return place


def _files(packages: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Name in the archive and place of what Python imports of the packages."""
    compiled = get_config_var("EXT_SUFFIX")
    for package in packages:
        spec = find_spec(package)
        assert spec
        assert spec.submodule_search_locations
        root, folder = Path(spec.submodule_search_locations[0]), package.replace(".", "/")
        for path in root.rglob("*"):
            if path.name.endswith((".py", compiled)):
                yield f"{folder}/{path.relative_to(root).as_posix()}", path
        if folder != package:
            yield f"{folder.partition('/')[0]}/__init__.py", root.parent / "__init__.py"


def _packed(files: Sequence[tuple[str, bytes]]) -> bytes:
    """The same bytes for the same files, on every machine and at any time."""
    octets = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=octets, mode="wb", filename="", mtime=0) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w") as archive,
    ):
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return octets.getvalue()
