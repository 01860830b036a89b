"""SIGHUP to a real broker whose settings file was edited."""

import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from tests.support.admin import Admin
from tests.support.watched_broker import WatchedBroker


def until(told: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(400):
        if told():
            return
        pause.wait(0.05)
    raise AssertionError("it was never told")


def test_a_reload_counts_or_is_refused_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("max.connections.per.ip: 500\n")
    log = tmp_path / "log"
    with WatchedBroker(tmp_path / "data", log=log, options=["--config", str(file)]) as broker:
        api = Admin(broker.process.facts["http"])

        def in_force(name: str) -> str:
            found = {each["name"]: each["value"] for each in api.get("/api/config")["settings"]}
            return str(found[name])

        def hang_up_until(event: str, times: int) -> str:
            os.kill(broker.process.pid, signal.SIGHUP)
            until(lambda: len(re.findall(rf"event={event} ", broker.log_text)) == times)
            return broker.log_text

        file.write_text("max.connections.per.ip: 600\nnum.partitions: 2\n")
        text = hang_up_until("settings_reloaded", 1)
        assert "changed=max.connections.per.ip need_restart=num.partitions" in text
        assert (in_force("max.connections.per.ip"), in_force("num.partitions")) == ("600", "1")

        file.write_text("max.connections.per.ip: 700\nmax.connections: lots\nno.key: 1\n")
        text = hang_up_until("settings_not_reloaded", 2)
        assert f"{file}:2: max.connections: " in text
        assert f"{file}:3: no.key is not a known setting" in text
        assert in_force("max.connections.per.ip") == "600"

        file.write_text("max.connections.per.ip: 700\n")
        hang_up_until("settings_reloaded", 2)
        assert in_force("max.connections.per.ip") == "700"
        broker.check_unharmed()
