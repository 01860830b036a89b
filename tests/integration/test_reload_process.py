"""SIGHUP to a real broker whose settings file was edited."""

import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.support.clients.admin import Admin
from tests.support.worlds.watched_broker import WatchedBroker


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


def test_a_renewed_token_counts_and_the_old_one_is_refused(tmp_path: Path) -> None:
    """A file that is no token refuses the reload, and the broker keeps the one it had."""
    file, log = tmp_path / "token", tmp_path / "log"
    old, new = "an-old-token-of-24-chars", "a-new-token-of-24-chars"
    file.write_text(old)
    file.chmod(0o600)
    options = ["--set", f"horolog.http.token.file={file}"]
    with WatchedBroker(tmp_path / "data", log=log, options=options) as broker:
        url = f"http://{broker.process.facts['http']}/api/clock/confirm"

        def answers(token: str) -> int:
            asked = Request(url, method="POST", headers={"Authorization": f"Bearer {token}"})
            try:
                with urlopen(asked) as answer:
                    return int(answer.status)
            except HTTPError as error:
                return error.code

        def hang_up_until(event: str) -> None:
            os.kill(broker.process.pid, signal.SIGHUP)
            until(lambda: f"event={event}" in broker.log_text)

        assert [answers(old) == 401, answers(new) == 401] == [False, True]
        file.write_text("too short")
        hang_up_until("settings_not_reloaded")
        assert "horolog.http.token.file" in broker.log_text
        assert [answers(old) == 401, answers(new) == 401] == [False, True]
        file.write_text(f"{new}\n")
        hang_up_until("http_token_renewed")
        assert [answers(old) == 401, answers(new) == 401] == [True, False]
        assert new not in broker.log_text
        assert old not in broker.log_text
