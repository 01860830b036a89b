"""What the kernel knows of a broker's process: CPU time, memory, open files, mappings."""

import os
import time
from pathlib import Path

CPU_OF_PROCESS = 2  # the kind of clock; what clock_getcpuclockid(3) makes of a process id


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads, living and gone, in user and kernel, to the nanosecond."""
    return time.clock_gettime(~pid << 3 | CPU_OF_PROCESS)


def children(pid: int) -> tuple[int, ...]:
    """Processes that this one has begun, and that have not ended."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return tuple(int(child) for each in lists for child in each.read_text().split())


def resident_mib(pid: int) -> float:
    """Memory in RAM right now."""
    return _status_kib(pid, "VmRSS") / 1024


def peak_resident_mib(pid: int) -> float:
    """The most memory in RAM so far."""
    return _status_kib(pid, "VmHWM") / 1024


def forget_peak(pid: int) -> None:
    """The peak starts again from the present size."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def read_bytes(pid: int) -> int:
    """What the process has read by calls so far, from memory or disk."""
    line = Path(f"/proc/{pid}/io").read_text().splitlines()[0]
    return int(line.removeprefix("rchar:"))


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def mappings(pid: int) -> int:
    return len(Path(f"/proc/{pid}/maps").read_text().splitlines())


def _status_kib(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(f"/proc/{pid}/status has no {name}")
