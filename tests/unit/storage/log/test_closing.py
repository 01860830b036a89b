"""A log that is closed: what was under way ends first, and nothing is written after it."""

import threading
from collections.abc import Callable

import pytest

from storage.errors import LogOffline
from storage.files import synced_mark
from storage.log.log import Log
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import append, make_durable, open_log

SECONDS = 10.0


class Pause:
    """Stops whoever calls `wrapped`, on a thread, until it may go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        self.begun, self.may_go_on = threading.Event(), threading.Event()
        wrapped = getattr(owner, name)

        def waits(*args: object, **kwargs: object) -> object:
            self.begun.set()
            self.may_go_on.wait(SECONDS)
            return wrapped(*args, **kwargs)

        monkeypatch.setattr(owner, name, waits)

    def closing(self, log: Log, work: Callable[[], object]) -> bool:
        """Runs `work` on a thread, closes the log meanwhile; whether that waited for it."""
        threads = [threading.Thread(target=each, daemon=True) for each in (work, log.abandon)]
        threads[0].start()
        self.begun.wait(SECONDS)
        threads[1].start()
        threads[1].join(0.2)
        waited = threads[1].is_alive()
        self.may_go_on.set()
        for each in threads:
            each.join(SECONDS)
        return waited


@pytest.mark.parametrize("cause", ["append", "sync", "vouch"])
def test_a_log_is_closed_when_what_is_written_there_is_over(
    cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(sim_env())
    append(log, 1000)
    log.sync()
    places = {
        "append": ("storage.log.appender.patch_offset_and_epoch", lambda: append(log, 2000)),
        "sync": ("storage.log.durability._sync_log", log.sync),
        "vouch": ("storage.files.synced_mark.encode", log.vouch),
    }
    place, work = places[cause]
    module, _, name = place.rpartition(".")
    pause = Pause(monkeypatch, __import__(module, fromlist=[name]), name)
    assert pause.closing(log, work)


def test_nothing_is_written_into_files_of_a_log_that_is_closed() -> None:
    """They may be those of the log that was made of them."""
    log = open_log(sim_env(), segment_bytes=150)
    for _ in range(3):
        append(log, 1000)
    make_durable(log)
    append(log, 1000)
    log.abandon()
    before = {each.name for each in log.files.fs.list_dir(log.files.path)}
    with pytest.raises(LogOffline):
        append(log, 2000)
    with pytest.raises(LogOffline):
        log.delete_records(2)
    with pytest.raises(LogOffline):
        log.replace_segments(log.snapshot.segments[:2], log.snapshot.segments[1])
    assert log.sync() == 4
    assert not log.dirty_bytes, "it would count as unsynced for ever"
    log.vouch()
    assert not log.roll()
    assert not log.remove_segments(2).segments
    assert not log.drop_local(2)
    assert {each.name for each in log.files.fs.list_dir(log.files.path)} == before
    assert synced_mark.load(log.files) == 3
