"""A second real server of S3's protocol: versitygw, whose objects are files of a directory.

Built from its Go module; where there is no Go it is not there.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.clients.go_programs import built_program, go
from tests.support.ports import free_ports
from tests.support.tier.s3_server import BUCKET, KEYS, TRIES, S3Server, answers

MODULE = Path(__file__).parent / "versitygw"
PACKAGE = "github.com/versity/versitygw/cmd/versitygw"


def why_no_versitygw() -> str | None:
    """The reason why it cannot be built here; None: it can."""
    return None if go() else "there is no Go on this machine, or one that is too old"


@contextmanager
def versitygw() -> Iterator[S3Server]:
    """Start one on a free port, with the bucket `tier`; its data go with it."""
    program = built_program(MODULE, PACKAGE)
    for attempt in range(1, TRIES + 1):
        with TemporaryDirectory(prefix="versitygw-") as folder, _started(program, folder) as server:
            assert server.process is not None
            if answers(server, server.process):
                yield server
                return
        assert attempt < TRIES, "versitygw does not start"


@contextmanager
def _started(program: Path, folder: str) -> Iterator[S3Server]:
    """Its buckets are the folders of its directory."""
    data = Path(folder) / "data"
    (data / BUCKET).mkdir(parents=True)
    address = f"127.0.0.1:{free_ports(1)[0]}"
    process = subprocess.Popen(
        [str(program), "--port", address, "posix", str(data)],
        cwd=folder,
        env={"HOME": folder, "ROOT_ACCESS_KEY": KEYS[0], "ROOT_SECRET_KEY": KEYS[1]},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield S3Server(address, BUCKET, KEYS, process)
    finally:
        process.kill()
        process.wait()
