"""The process that carries copies: it dies and is begun again, and it ends with its broker."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.tier.copier import carrier as carriers
from broker.tier.copier.carrier import ProcessCarrier
from broker.tier.copier.process import CopierAway, CopierPlace, CopierProcess
from broker.tier.store_account import StoreAccount
from config.tier.url import OptionalTierUrl
from storage.env import File
from storage.posix import PosixFileSystem
from storage.tier.port import StoreDenied
from tests.bench.process import children
from tests.integration.tier.test_tiered_broker import (
    RECORDS,
    make_topic,
    read_all,
    settings,
    wait_until_away,
    write,
)
from tests.support.clients.scraped import metric_of
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server, only_aws, seaweedfs
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

MIB = 1024 * 1024
SIZE = 20 * MIB
KILLS = 4
SLOWLY = {"remote.log.manager.copy.max.bytes.per.second": "1000000"}


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with seaweedfs() as running:
        yield running


class World:
    """A copier without a broker, and a file that it sends."""

    def __init__(self, server: S3Server, folder: Path) -> None:
        url = OptionalTierUrl().parse(server.url(folder.name))
        assert url is not None
        self.now = 0.0
        self.copier = CopierProcess(CopierPlace(url, allow_http=False), lambda: self.now)
        self.account = StoreAccount(lambda: 0.0)
        self.carrier = ProcessCarrier(self.copier, self.account)
        self.store = server.open(folder.name)
        path = folder / "segment"
        path.write_bytes(os.urandom(SIZE))
        self.file: File = PosixFileSystem().open(str(path), write=False)

    def send(self, key: str, signals: int = 0) -> None:
        """`signals`: one that the process gets while it sends."""

        def pace(_: int) -> None:
            if signals:
                os.kill(self.pid, signals)

        self.carrier.send_file(key, self.file, SIZE, pace)

    @property
    def pid(self) -> int:
        pid = self.copier.pid
        assert pid is not None
        return pid


@pytest.fixture
def world(server: S3Server, tmp_path: Path) -> Iterator[World]:
    with only_aws(server.environment):
        made = World(server, tmp_path)
        yield made
        made.copier.close()


def is_there(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_it_is_begun_with_the_first_copy_and_ends_when_it_is_closed(world: World) -> None:
    assert world.copier.pid is None
    world.send("a")
    assert world.store.get_range("a", 0, SIZE) == world.file.read_at(0, SIZE)
    pid = world.pid
    world.send("b")
    assert world.pid == pid
    world.copier.close()
    assert not is_there(pid)
    assert not world.copier.ends
    with pytest.raises(CopierAway):
        world.send("c")


def test_killed_while_it_sends_it_is_begun_again_after_a_wait_that_grows(world: World) -> None:
    for number, wait in enumerate((1.0, 2.0, 4.0), 1):
        with pytest.raises(CopierAway):
            world.send("a", signal.SIGKILL)
        assert world.copier.ends == number
        with pytest.raises(CopierAway, match="it begins again"):
            world.send("a")
        world.now += wait
    world.send("a")
    assert world.store.get_range("a", 0, SIZE) == world.file.read_at(0, SIZE)
    with pytest.raises(CopierAway):
        world.send("b", signal.SIGKILL)
    world.now += 1
    world.send("b")
    assert world.copier.ends == KILLS


def test_signals_for_the_broker_do_not_end_it(world: World) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        world.send(f"a{number}", number)
    assert not world.copier.ends


def test_one_that_is_silent_is_killed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.send("a")
    monkeypatch.setattr(carriers, "SILENT_SECONDS", 0.5)
    pid = world.pid
    with pytest.raises(CopierAway, match="silent"):
        world.send("b", signal.SIGSTOP)
    assert not is_there(pid)
    assert world.copier.ends == 1


def test_it_ends_while_it_is_stopped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.tier.copier.process.ENDS_WITHIN_SECONDS", 0.5)
    world.send("a")
    pid = world.pid
    os.kill(pid, signal.SIGSTOP)
    world.copier.close()
    assert not is_there(pid)


def test_an_error_of_the_store_is_no_end(server: S3Server, world: World) -> None:
    with only_aws({**server.environment, "AWS_SECRET_ACCESS_KEY": "another"}):
        with pytest.raises(StoreDenied):
            world.send("a")
        assert not world.copier.ends


def started(server: S3Server, folder: Path, **more: str) -> NodeProcess:
    with only_aws(server.environment):
        return start_broker(folder / "data", {**settings(server, folder.name), **more})


def copier_of(broker: NodeProcess) -> int:
    until(lambda: children(broker.pid), "no process copies")
    (pid,) = children(broker.pid)
    return pid


def test_a_broker_copies_all_though_it_is_killed_again_and_again(
    server: S3Server, tmp_path: Path
) -> None:
    with started(server, tmp_path, **SLOWLY) as broker:
        make_topic(broker.bootstrap, "t")
        write(broker.bootstrap, "t")
        seen = set[int]()
        while len(seen) < KILLS:
            pid = copier_of(broker)
            seen.add(pid)
            time.sleep(0.3)  # it sends, as slow as it may
            os.kill(pid, signal.SIGKILL)
            until(lambda: children(broker.pid) != (pid,), "the killed one stays")  # noqa: B023
        write(broker.bootstrap, "t", RECORDS, 1000)  # nobody else has noticed
        wait_until_away(broker.bootstrap, "t")
        until(lambda: metric_of(broker, "horolog_tier_lag_segments") == 0, "segments wait")
        assert read_all(broker.bootstrap, "t", RECORDS + 1000) == list(range(RECORDS + 1000))
        assert metric_of(broker, "horolog_tier_copier_ends_total") == KILLS
        pid = copier_of(broker)
        assert broker.stop() == 0
    until(lambda: not is_there(pid), "it outlives its broker")
    assert (tmp_path / "data.log").read_text().count("event=tier_copier_ended") == KILLS


def test_it_ends_with_a_broker_that_is_killed_and_the_next_one_copies_on(
    server: S3Server, tmp_path: Path
) -> None:
    broker = started(server, tmp_path, **SLOWLY)
    make_topic(broker.bootstrap, "t")
    write(broker.bootstrap, "t")
    pid = copier_of(broker)
    broker.kill()
    until(lambda: not is_there(pid), "it outlives its broker")
    with started(server, tmp_path) as again:
        wait_until_away(again.bootstrap, "t")
        assert read_all(again.bootstrap, "t", RECORDS) == list(range(RECORDS))


def test_a_broker_stops_though_it_does_not_answer(server: S3Server, tmp_path: Path) -> None:
    with started(server, tmp_path, **SLOWLY) as broker:
        make_topic(broker.bootstrap, "t")
        write(broker.bootstrap, "t")
        pid = copier_of(broker)
        os.kill(pid, signal.SIGSTOP)
        assert broker.stop() == 0
    assert not is_there(pid)
