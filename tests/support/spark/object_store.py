"""An object store on this machine that speaks S3's protocol: moto's server, in its own process."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pyarrow import fs as pafs

from tests.support.ports import free_port

BUCKET = "copies"
START_SECONDS = 30
KEYS = ("testing", "secret")


class ObjectStore(NamedTuple):
    """A running one, with the bucket `copies`."""

    address: str
    """HOST:PORT."""

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for an S3 client."""
        return {
            "AWS_ACCESS_KEY_ID": KEYS[0],
            "AWS_SECRET_ACCESS_KEY": KEYS[1],
            "AWS_ENDPOINT_URL": f"http://{self.address}",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def uri(self, folder: str) -> str:
        """Of a folder in the bucket, with all that it takes to read it."""
        options = f"endpoint_override={self.address}&scheme=http&region=us-east-1"
        return f"s3://{KEYS[0]}:{KEYS[1]}@{BUCKET}/{folder}?{options}"

    @property
    def files(self) -> pafs.S3FileSystem:
        """To put things there, and to take them away."""
        return pafs.S3FileSystem(
            access_key=KEYS[0], secret_key=KEYS[1], endpoint_override=self.address, scheme="http",
            region="us-east-1", allow_bucket_creation=True,
        )  # fmt: skip

    def copy(self, directory: Path, folder: str) -> None:
        """Copies a directory to `folder` in the bucket."""
        here = pafs.LocalFileSystem()
        self.files.create_dir(f"{BUCKET}/{folder}")
        pafs.copy_files(
            str(directory), f"{BUCKET}/{folder}",
            source_filesystem=here, destination_filesystem=self.files,
        )  # fmt: skip


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Start one on a free port; it holds everything in memory."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        store = ObjectStore(f"127.0.0.1:{port}")
        store.files.create_dir(BUCKET)
        yield store
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    with socket.socket() as probe:
        while probe.connect_ex(("127.0.0.1", port)):
            assert process.poll() is None, "the object store ended at once"
            assert time.monotonic() < deadline, "the object store does not answer"
            time.sleep(0.05)
