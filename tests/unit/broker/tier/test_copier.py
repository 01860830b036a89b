"""Copies by another process as its broker has them: bytes, counts, and what goes wrong."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import cast

import pytest

from broker.tier.copier.carrier import ProcessCarrier
from broker.tier.copier.faults import error_of, row_of
from broker.tier.copier.line import MAX_PACKET_BYTES, CopierLine, LineEnded, new_pair
from broker.tier.copier.process import CopierProcess
from broker.tier.copier.program import Porter
from broker.tier.counted_store import CountedStore
from broker.tier.store_account import Purpose, StoreAccount, TopicKind
from storage.env import File
from storage.errors import CorruptLog, DiskError, FileMissing, NoSpace, StorageError
from storage.posix import PosixFileSystem
from storage.tier.carrying import NotAsSent, StoreCarrier
from storage.tier.port import (
    ObjectExists,
    ObjectMissing,
    StoreAway,
    StoreDenied,
    StoreError,
    StoreThrottled,
    StoreTimedOut,
)
from tests.support.tier.faulty_store import Fault, FaultyStore, always, in_order
from tests.support.tier.memory_store import MemoryStore

MIB = 1024 * 1024
SIZE = 9 * MIB + 17
KEY = "topics/t/AAAAAAAAAAAAAAAAAAAAAA/0/00000000000000000000-0000000000000001.log"


class World:
    """A line to a thread that does what the process does, with a store in memory."""

    def __init__(self, folder: Path) -> None:
        self.objects = MemoryStore()
        self.store = FaultyStore(self.objects, in_order())
        self.account = StoreAccount(lambda: 0.0)
        self.paced: list[int] = []
        ours, theirs = new_pair()
        self.connection = CopierLine(ours)
        self.thread = threading.Thread(target=Porter(CopierLine(theirs), self.store).serve)
        self.thread.start()
        self.carrier = ProcessCarrier(cast("CopierProcess", self), self.account)
        self.data = Random(1).randbytes(SIZE)
        self.path = folder / "segment"
        self.path.write_bytes(self.data)
        self.file: File = PosixFileSystem().open(str(self.path), write=False)

    @contextmanager
    def line(self, key: str) -> Iterator[CopierLine]:
        assert key
        yield self.connection

    def send(self, size_bytes: int = SIZE) -> object:
        return self.carrier.send_file(KEY, self.file, size_bytes, self.paced.append)

    def end(self) -> None:
        self.connection.close()
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.end()


def test_what_arrives_and_is_counted_is_what_the_thread_that_asks_would_send(world: World) -> None:
    objects, account, paced = MemoryStore(), StoreAccount(lambda: 0.0), list[int]()
    counted = CountedStore(objects, account, Purpose.COPY)
    here = StoreCarrier(counted, account.spoilt)
    side = b"index" * 20_000
    expected = here.send_file(KEY, world.file, SIZE, paced.append)
    assert world.send() == expected
    assert world.carrier.send_bytes("side", side, world.paced.append) == here.send_bytes(
        "side", side, paced.append
    )
    assert world.objects.objects == objects.objects == {KEY: world.data, "side": side}
    assert world.paced == paced
    assert world.account.requests == account.requests
    assert world.account.size_bytes == account.size_bytes
    for kind in TopicKind:
        assert world.account.by_topic(kind) == account.by_topic(kind)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.DENIED, StoreDenied),
        (Fault.LOST_BEFORE, StoreError),
        (Fault.LOST_AFTER, StoreError),
    ],
)
def test_an_error_of_the_store_is_raised_here_and_the_line_goes_on(
    world: World, fault: Fault, error: type[StoreError]
) -> None:
    world.store.script = always(fault, "put_file")
    with pytest.raises(error) as found:
        world.send()
    assert found.value.path == KEY
    assert sum(world.account.errors.values()) == 1
    assert world.account.by_topic(TopicKind.FAILED_COPIES) == {"t": 1}
    world.store.script = in_order()
    world.send()
    assert world.objects.objects[KEY] == world.data


def test_other_bytes_in_the_store_are_found_and_counted(world: World) -> None:
    world.store.script = always(Fault.OTHER_BYTES, "get_range")
    with pytest.raises(NotAsSent):
        world.send()
    assert sum(world.account.errors.values()) == 1
    world.store.script = in_order()
    world.send()


def test_a_file_that_is_shorter_is_damaged_and_nothing_arrives(world: World) -> None:
    with pytest.raises(CorruptLog, match=f"it ends at {SIZE}"):
        world.send(SIZE + 1)
    assert not world.objects.objects
    world.send()


def test_a_file_that_was_closed_meanwhile_is_an_error_of_the_disk(world: World) -> None:
    world.file.close()
    with pytest.raises(DiskError, match="Bad file descriptor"):
        world.send()
    assert not world.account.requests


@pytest.mark.parametrize(
    "error",
    [
        *(
            kind("a/b", "put_file", "status 503 SlowDown", 5)
            for kind in (
                DiskError, FileMissing, NoSpace, ObjectExists, ObjectMissing, StoreAway,
                StoreDenied, StoreError, StoreThrottled, StoreTimedOut,
            )
        ),
        CorruptLog("a/b", "it ends at 7"),
        NotAsSent("a/b", "1 of 2 bytes arrived"),
        StorageError("a/b", "of another kind"),
    ],
)  # fmt: skip
def test_an_error_is_the_same_at_the_other_end(error: StorageError) -> None:
    came = error_of(row_of(error))
    assert (type(came), str(came), came.path) == (type(error), str(error), error.path)
    if isinstance(error, DiskError):
        assert isinstance(came, DiskError)
        assert (came.operation, came.errno) == (error.operation, error.errno)


def test_a_line_that_ends_or_brings_no_packet_is_over() -> None:
    for sent in (b"", b"no packet", b"[" * MAX_PACKET_BYTES + b" "):
        ours, theirs = new_pair()
        with theirs:
            if sent:
                theirs.send(sent)
            else:
                theirs.close()
            with pytest.raises(LineEnded):
                CopierLine(ours).receive(10)
        ours.close()


def test_a_packet_that_is_too_large_is_not_sent() -> None:
    ours, theirs = new_pair()
    with theirs, ours:
        with pytest.raises(LineEnded):
            CopierLine(ours).send({"path": "x" * MAX_PACKET_BYTES})
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
