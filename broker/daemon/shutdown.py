"""Closes many logs at once, so that the grace of a container is enough to stop.

An fsync mostly waits, and a file system answers several with one write of its journal: threads for
nothing but this, for as long as it takes. First all logs are synced, then their other files are
made, then those are synced: in turns, each fsync would also wait for the files of the logs before.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from storage.directory.log_manager import LogManager

THREADS = 4  # more of them wait for the interpreter, not for the disk
LEAST_LOGS = 8  # fewer are closed one after the other, as `LogManager.close` does


async def close_logs(loop: asyncio.AbstractEventLoop, manager: LogManager) -> None:
    """All logs of a directory; what fails is remembered by the manager."""
    logs = list(manager.logs.values())
    if len(logs) < LEAST_LOGS:
        return
    with ThreadPoolExecutor(THREADS, "closing") as threads:
        parts = [logs[number::THREADS] for number in range(THREADS)]
        for work in (manager.sync_logs, manager.write_logs, manager.close_logs):
            await asyncio.gather(*(loop.run_in_executor(threads, work, part) for part in parts))
