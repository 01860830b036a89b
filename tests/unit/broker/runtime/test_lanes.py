"""Threads for work that must not be felt."""

import os
import sys
import threading

import pytest

from broker.runtime.lanes import PATIENCE, patient_threads


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_patient_threads_give_way_and_take_nobody_with_them() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = priority()
    with patient_threads(2, "patient") as threads:
        assert {threads.submit(priority).result() for _ in range(4)} == {min(19, before + PATIENCE)}
    assert priority() == before
