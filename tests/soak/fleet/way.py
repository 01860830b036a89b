"""A way from one node to an engine, in a process of its own: cut, nothing comes through.

What was sent meanwhile comes when it is mended, as over a network that loses packets for a while.
`python -m tests.soak.fleet.way HOST:PORT` says its own address, and ends with its input.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[3]
READ_BYTES = 256 * 1024


class Way:
    """One that is open; the caller ends it."""

    def __init__(self, engine: str) -> None:
        """`engine` is HOST:PORT."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.fleet.way", engine],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Nothing comes through."""
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    def end(self) -> None:
        """Its connections end with it."""
        self._process.kill()
        self._process.communicate()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _serve(engine: str) -> None:
    host, _, port = engine.rpartition(":")

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_carry(reader, back), _carry(there, writer))

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    mine = server.sockets[0].getsockname()
    print(f"{mine[0]}:{mine[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
