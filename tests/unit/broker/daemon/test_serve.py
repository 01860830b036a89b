"""Each way to end has its exit status, and a user's mistake never shows a traceback."""

import asyncio
import errno
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from broker.cli.main import main
from broker.daemon import serve as module
from broker.daemon.app import StartGivenUp
from broker.runtime.event_log import journal
from broker.server.server import ListenError
from config.store import ConfigStore
from storage.errors import (
    CorruptCheckpoint,
    CorruptLog,
    DirectoryLocked,
    DiskError,
    NewerFormat,
    NoSpace,
    StorageError,
)
from tests.support.disk.simenv import SimClock, sim_env

STOP_ON_SIGNALS = module._stop_on_signals


@pytest.fixture(autouse=True)
def _untouched_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_tune", lambda: None)
    monkeypatch.setattr(module, "configure", lambda **_: None)
    monkeypatch.setattr(module, "_stop_on_signals", lambda broker, reload: None)
    monkeypatch.setattr(module.gc, "freeze", lambda: None)
    monkeypatch.setattr(journal, "threshold", 100)


class AlreadySet:
    async def wait(self) -> None:
        return


class FakeBroker:
    """A broker that starts with `error`, or stops with `clean`."""

    error: Exception | None = None
    clean = True
    bootstrap, http = "127.0.0.1:1", None

    def __init__(self, env: Any, config: Any, loop: Any, **_: Any) -> None:
        image = SimpleNamespace(topics={})
        self.services = SimpleNamespace(
            loop=None,
            topics=SimpleNamespace(image=image),
            config=ConfigStore(),
            stopping=AlreadySet(),
        )

    async def start(self) -> None:
        if self.error is not None:
            raise self.error

    async def stop(self) -> bool:
        return self.clean


def run(monkeypatch: pytest.MonkeyPatch, broker: type, *flags: str) -> int:
    monkeypatch.setattr(module, "Broker", broker)
    return module.serve(
        flags=flags, file=None, log_level="error", log_as_json=False, loop_factory=None
    )


@pytest.mark.parametrize(
    ("error", "status", "remedy"),
    [
        (ListenError("cannot listen on 1.2.3.4:9092: in use", errno.EADDRINUSE), 2, "stop it"),
        (ListenError("cannot listen on x:1: Permission denied", errno.EACCES), 2, "above 1023"),
        (ListenError("cannot listen on x:1: Name or service not known"), 2, "another address"),
        (DirectoryLocked("data/.lock", "another process holds the lock"), 2, "of its own"),
        (DiskError("data", "open", "Permission denied", errno.EACCES), 2, "chown"),
        (DiskError("data", "make directory", "Read-only file system", errno.EROFS), 2, "writable"),
        (NoSpace("data", "write", "No space left on device", errno.ENOSPC), 2, "make room"),
        (DiskError("data", "read", "Input/output error", errno.EIO), 2, "system's log"),
        (NewerFormat("data/meta.properties", "version 9"), 2, "newer"),
        (StorageError("data/meta.properties", "belongs to node 2, not to node 1"), 2, "log.dirs"),
        (CorruptLog("data/orders-0", "damaged at 17"), 3, "horolog verify"),
        (CorruptCheckpoint("data/horolog-topics.json", "no JSON"), 2, "backup"),
    ],
)
def test_a_start_that_fails_says_why_and_what_to_do_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    status: int,
    remedy: str,
) -> None:
    broker = type("Failing", (FakeBroker,), {"error": error})
    assert run(monkeypatch, broker) == status
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"horolog: {error}: ")
    assert remedy in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("now_ms", [0, 86_400_000, -5, 1_600_000_000_000])
def test_a_clock_that_cannot_be_right_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], now_ms: int
) -> None:
    monkeypatch.setattr(module, "real_env", lambda: sim_env(clock=SimClock(now_ms)))
    assert run(monkeypatch, FakeBroker) == 5
    output = capsys.readouterr()
    assert "the clock of this machine says 19" in output.err or "2020-09-13" in output.err
    assert "set it" in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize(("clean", "status"), [(True, 0), (False, 4)])
def test_a_stop_tells_whether_everything_is_on_the_disk(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    clean: bool,
    status: int,
) -> None:
    broker = type("Stopping", (FakeBroker,), {"clean": clean})
    assert run(monkeypatch, broker) == status
    expected = "horolog ready bootstrap=127.0.0.1:1 next: kcat -L -b 127.0.0.1:1\n"
    assert capsys.readouterr().out == expected


def test_a_start_that_is_given_up_has_stopped_as_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, type("Waiting", (FakeBroker,), {"error": StartGivenUp()})) == 0
    assert capsys.readouterr().out == ""


def test_a_signal_ends_a_start_that_waits() -> None:
    """Nothing else hears of it until the broker has come up."""
    heard, handlers = [], dict[Any, Any]()
    loop = SimpleNamespace(add_signal_handler=handlers.__setitem__)
    stopping = asyncio.Event()
    broker: Any = SimpleNamespace(
        services=SimpleNamespace(loop=loop, stopping=stopping),
        give_up=lambda: heard.append("give up"),
    )
    STOP_ON_SIGNALS(broker, SimpleNamespace(begin=None))  # type: ignore[arg-type]
    handlers[signal.SIGTERM]()
    assert stopping.is_set()
    assert heard == ["give up"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), ValueError()])
def test_it_serves_where_nobody_can_be_told_that_it_is_ready(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Standard output may be a file on a full disk, or closed."""

    def write(_: str) -> None:
        raise error

    monkeypatch.setattr(module.sys, "stdout", SimpleNamespace(write=write, flush=lambda: None))
    assert run(monkeypatch, FakeBroker) == 0


def test_bad_settings_end_with_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, FakeBroker, "node.id=x") == 1
    assert "node.id" in capsys.readouterr().err


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `serve` was called with; it returns 4."""
    given: dict[str, Any] = {}

    def note(**arguments: Any) -> int:
        given.update(arguments)
        return 4

    monkeypatch.setattr(module, "serve", note)
    return given


def test_options_of_serve_are_settings_and_its_status_is_the_command_line_s(
    served: dict[str, Any],
) -> None:
    line = "serve --data-dir /d --listen :1 --http h:2 --set a=b --set log.dirs=/e --config c.yaml"
    assert main(line.split()) == 4
    assert served["file"] == "c.yaml"
    assert served["flags"] == [
        "log.dirs=/d",
        "listeners=PLAINTEXT://:1",
        "horolog.http.listener=h:2",
        "a=b",
        "log.dirs=/e",
    ]


def test_no_http_is_an_empty_setting(served: dict[str, Any]) -> None:
    main(["serve", "--http", ""])
    assert served["flags"] == ["horolog.http.listener="]
