"""A way to an object store on which each request takes longer, in a process of its own.

`python -m tests.bench.far_store HOST:PORT SECONDS` says its own address, and ends with its input.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.tier.fault_proxy import Around, fault_proxy
from tests.support.tier.s3_calls import Asked
from tests.support.tier.s3_server import S3Server

ROOT = Path(__file__).parents[2]


@contextmanager
def farther(store: S3Server, seconds: float) -> Iterator[S3Server]:
    """The store as clients reach it on that way."""
    asked = [sys.executable, "-m", "tests.bench.far_store", store.address, str(seconds)]
    with subprocess.Popen(
        asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        yield store._replace(address=process.stdout.readline().strip())
        process.communicate()


def main(store: str, seconds: float) -> None:
    """Until the input ends."""

    def wait(_: Asked) -> bool:
        time.sleep(seconds)
        return False

    with fault_proxy(store) as proxy:
        proxy.around = Around(before=wait)
        print(proxy.address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
