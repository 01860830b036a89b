"""A process that a test freezes does nothing more, in any of its threads."""

import sys
from pathlib import Path

from tests.support.patience import until
from tests.support.worlds.node_process import NodeProcess, thread_states

COUNTING = """
import threading, sys
def count(path):
    with open(path, "ab", 0) as file:
        while True:
            file.write(b".")
for path in sys.argv[1:]:
    threading.Thread(target=count, args=(path,), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


def test_a_frozen_process_writes_nothing(tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    command = [sys.executable, "-c", COUNTING, *map(str, files)]
    with NodeProcess(command, tmp_path / "log", ready_within_seconds=30) as node:
        until(lambda: all(each.exists() and each.stat().st_size for each in files))
        node.freeze()
        until(lambda: thread_states(node.pid) == {"T"})  # the writes under way have ended
        sizes = [each.stat().st_size for each in files]
        for _ in range(1000):
            assert [each.stat().st_size for each in files] == sizes
        node.kill()
