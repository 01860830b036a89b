"""Real object stores that speak S3's protocol, on this machine: SeaweedFS, and moto's server."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from platform import machine
from tempfile import TemporaryDirectory
from typing import NamedTuple
from unittest import mock

from broker.access.store.objects import StoreLimits, open_store
from storage.tier.port import ObjectStore, StoreError
from tests.support.ports import free_ports
from tests.support.spark.object_store import BUCKET as BUCKET_OF_MOTO
from tests.support.spark.object_store import KEYS as KEYS_OF_MOTO
from tests.support.spark.object_store import object_store

BUCKET = "tier"
LOOPBACK = "127.0.0.1"
KEYS = ACCESS_KEY, SECRET_KEY = "AKIDPLANTEDFORTESTS0", "planted+secret/of0tests"
START_SECONDS = 30
TRIES = 5
LAST_WORDS = 2000
PORTS = ("master", "volume", "filer", "s3", "admin")
LIMITS = StoreLimits(connect_seconds=2, request_seconds=10)


class S3Server(NamedTuple):
    """A running store."""

    address: str
    """HOST:PORT."""
    bucket: str
    keys: tuple[str, str]
    """Access key and secret key."""
    process: "subprocess.Popen[bytes] | None" = None
    start: "Callable[[], subprocess.Popen[bytes]] | None" = None
    """Starts its process on its data."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables for a client of it; a broker, for one."""
        return {
            "AWS_ACCESS_KEY_ID": self.keys[0],
            "AWS_SECRET_ACCESS_KEY": self.keys[1],
            "AWS_ENDPOINT_URL": f"http://{self.address}",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def url(self, prefix: str) -> str:
        """The value of `horolog.tier.url` for a prefix."""
        return f"s3://{self.bucket}/{prefix}"

    def open(self, prefix: str, limits: StoreLimits = LIMITS, **environment: str) -> ObjectStore:
        """Its objects below a prefix. `environment`: variables in the place of its own."""
        with only_aws({**self.environment, **environment}):
            far = not self.address.startswith(LOOPBACK)
            return open_store(self.url(prefix), allow_http=far, limits=limits)

    def stop(self) -> None:
        """Ends it at once."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def begun_again(self) -> "S3Server":
        """The same one with its data after `stop`, when it answers; who asks stops it."""
        assert self.start is not None
        process = self.start()
        again = self._replace(process=process)
        assert answers(again, process), "the store does not start again"
        return again

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Answers nothing; connections to it are still accepted."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)


@contextmanager
def only_aws(variables: Mapping[str, str]) -> Iterator[None]:
    """The environment with these of AWS_* and no others, and without files of credentials."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    kept["HOME"] = "/nonexistent"
    with mock.patch.dict(os.environ, {**kept, **variables}, clear=True):
        yield


def unfinished_uploads(server: S3Server) -> int:
    """Uploads in parts that were begun, and neither ended nor given up."""
    import boto3

    with only_aws(server.environment):
        found = boto3.Session().client("s3").list_multipart_uploads(Bucket=server.bucket)
    return len(found.get("Uploads", ()))


def is_seaweedfs_published() -> bool:
    """True where the package registry has SeaweedFS: there it has to be installed."""
    return sys.platform == "linux" and machine() == "x86_64"


@contextmanager
def seaweedfs(
    folder: Path | None = None, keys: tuple[str, str] = KEYS, host: str = LOOPBACK
) -> Iterator[S3Server]:
    """Start SeaweedFS on free ports, with the bucket `tier`.

    Its data are in `folder`, which another one may be started on later; else they go with it.
    `keys`: the access key that it lets in, and its secret. `host`: where it listens.
    """
    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="seaweedfs-")))
        yield stack.enter_context(_running(folder, keys, host))


@contextmanager
def moto() -> Iterator[S3Server]:
    """Start moto's server, which keeps all in memory, and lets everybody in."""
    with object_store() as server:
        yield S3Server(server.address, BUCKET_OF_MOTO, KEYS_OF_MOTO)


@contextmanager
def _running(folder: Path, keys: tuple[str, str], host: str) -> Iterator[S3Server]:
    """One that answers. A free port may be another's by the time it is used, hence the tries."""
    for attempt in range(1, TRIES + 1):
        ports = dict(zip(_options(), free_ports(2 * len(PORTS)), strict=True))
        start = partial(_started, _command(folder, ports, keys, host), folder)
        process = start()
        server = S3Server(f"{host}:{ports['s3.port']}", BUCKET, keys, process, start)
        try:
            if answers(server, process):
                yield server
                return
        finally:
            process.kill()  # asked to end, it takes seconds
            process.wait()
            _remove_sockets(ports.values())
        assert attempt < TRIES, f"SeaweedFS does not start: {_last_words(folder)}"
        time.sleep(attempt)


def _started(command: list[str], folder: Path) -> "subprocess.Popen[bytes]":
    with _said(folder).open("wb") as said:
        return subprocess.Popen(
            command, cwd=folder, env={"HOME": str(folder), "TMPDIR": str(folder)},
            stdout=said, stderr=said,
        )  # fmt: skip


def _said(folder: Path) -> Path:
    return folder / "said.txt"


def _last_words(folder: Path) -> str:
    """Words of a store that ended, and the room that its disk has."""
    text = _said(folder).read_text(errors="replace")[-LAST_WORDS:]
    return f"{shutil.disk_usage(folder).free >> 20} MiB are free; {text}"


def _command(folder: Path, ports: Mapping[str, int], keys: tuple[str, str], host: str) -> list[str]:
    identities = folder / "identities.json"
    credentials = [{"accessKey": keys[0], "secretKey": keys[1]}]
    one = {"name": "tier", "credentials": credentials, "actions": ["Admin"]}
    identities.write_text(json.dumps({"identities": [one]}))
    return [
        str(Path(sysconfig.get_path("scripts")) / "weed"), "-logdir", str(folder), "mini",
        f"-dir={folder}", f"-ip={host}", f"-ip.bind={host}", f"-s3.config={identities}",
        f"-bucket={BUCKET}", "-s3.autoCreateBucket=false", "-master.telemetry=false",
        "-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0",
        *(f"-{option}={port}" for option, port in ports.items()),
    ]  # fmt: skip


def _options() -> Iterator[str]:
    for name in PORTS:
        yield f"{name}.port"
        yield f"{name}.port.grpc"


def answers(server: S3Server, process: "subprocess.Popen[bytes]") -> bool:
    """False when it ended. SeaweedFS makes its bucket after its door has opened."""
    deadline = time.monotonic() + START_SECONDS
    store = server.open("probe")
    while process.poll() is None:
        with suppress(StoreError):
            return next(store.list(""), None) is None
        assert time.monotonic() < deadline, "the store does not answer"
        time.sleep(0.05)
    return False


def _remove_sockets(ports: Iterable[int]) -> None:
    """Its sockets in /tmp, which a killed one leaves there."""
    for port in ports:
        for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
            with suppress(OSError):
                path.unlink()
