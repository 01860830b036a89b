"""Threads for work that must not be felt."""

import asyncio
import os
import sys
import threading

import pytest

from broker.runtime.lanes import PATIENCE, DiskLanes, patient_threads


def own_priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_patient_threads_give_way_and_take_nobody_with_them() -> None:
    before = own_priority()
    with patient_threads(2, "patient") as threads:
        found = {threads.submit(own_priority).result() for _ in range(4)}
    assert found == {min(19, before + PATIENCE)}
    assert own_priority() == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
async def test_a_patient_lane_gives_way_and_a_disk_lane_does_not() -> None:
    lanes = DiskLanes(asyncio.get_running_loop())
    before = own_priority()
    assert await lanes.patient_lane("sums").run(own_priority) == min(19, before + PATIENCE)
    assert await lanes.lane("disk").run(own_priority) == before
    await lanes.close()
