"""What the kernel knows of a broker's process: CPU time, memory, open files, mappings."""

import os
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
CPU_FIELDS_AFTER_NAME = (11, 12)  # utime, stime


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads, living and gone, in user and kernel; a tick is 10 ms."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(after_name[field]) for field in CPU_FIELDS_AFTER_NAME) / TICKS_PER_SECOND


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
