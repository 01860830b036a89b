"""The port to an object store, of the models in memory and of real stores: one suite for all."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from uuid import uuid4

import pytest

from broker.access.store.objects import StoreLimits
from broker.tier.create_only import prove_create_only
from storage.backup.directory_store import DirectoryStore
from storage.errors import DiskError
from storage.tier.port import ObjectExists, ObjectMissing, ObjectStore, StoreDenied, StoreError
from tests.support.clients.go_programs import BUILD_SECONDS
from tests.support.disk.simenv import sim_env
from tests.support.tier.faulty_store import FaultyStore, in_order
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.s3_server import (
    LIMITS,
    SECRET_KEY,
    S3Server,
    is_seaweedfs_published,
    moto,
    seaweedfs,
    unfinished_uploads,
)
from tests.support.tier.versity import versitygw, why_no_versitygw

# On a new machine the first of them builds a server.
pytestmark = pytest.mark.timeout(BUILD_SECONDS + 60)

MIB = 1024 * 1024
RACERS = 16
QUICK = StoreLimits(connect_seconds=0.3, request_seconds=0.3)
PATIENT = StoreLimits(request_seconds=60)
"""SeaweedFS lets those who race for a name wait, second by second."""
STORES = ("memory", "faultless", "directory", "seaweedfs", "versitygw", "moto")
ODD_TOPICS = (
    "...", ".a", "a.", "-", "_", "a.b-c_d", "__consumer_offsets", "CON", "aux.log", "x" * 249, "0",
)  # fmt: skip


class Kind(NamedTuple):
    """One kind of store."""

    name: str
    server: S3Server | None

    def open(self, limits: StoreLimits = LIMITS) -> ObjectStore:
        """An empty place of its own."""
        if self.name == "directory":
            return DirectoryStore.for_writing(sim_env().fs, "/backup")
        if self.server is None:
            return (
                FaultyStore(MemoryStore(), in_order())
                if self.name == "faultless"
                else MemoryStore()
            )
        return self.server.open(f"test/{uuid4().hex}", limits)


@pytest.fixture(scope="module")
def seaweed() -> Iterator[S3Server]:
    if not is_seaweedfs_published():
        pytest.skip("the package registry has no SeaweedFS for this platform")
    with seaweedfs() as server:
        yield server


@pytest.fixture(scope="module")
def versity() -> Iterator[S3Server]:
    if (why := why_no_versitygw()) is not None:
        pytest.skip(why)
    with versitygw() as server:
        yield server


@pytest.fixture(scope="module")
def moto_server() -> Iterator[S3Server]:
    with moto() as server:
        yield server


@pytest.fixture(scope="module", params=STORES)
def kind(request: pytest.FixtureRequest) -> Iterator[Kind]:
    if request.param in {"memory", "faultless", "directory"}:
        yield Kind(request.param, None)
        return
    fixture = {"seaweedfs": "seaweed", "versitygw": "versity", "moto": "moto_server"}
    yield Kind(request.param, request.getfixturevalue(fixture[request.param]))


@pytest.fixture
def store(kind: Kind) -> ObjectStore:
    return kind.open()


def keys_of(store: ObjectStore, prefix: str = "", after: str = "") -> list[str]:
    return [each.key for each in store.list(prefix, after=after)]


def test_an_object_comes_back_as_it_was_put(store: ObjectStore) -> None:
    for key, data in (("a", b"one"), ("b/c", bytearray(b"two")), ("d", memoryview(b"123")[1:])):
        store.put_new(key, data)
        assert store.get(key) == bytes(data)
    store.put_new("empty", b"")
    assert store.get("empty") == b""


def test_a_name_is_used_once(store: ObjectStore) -> None:
    store.put_new("a/b", b"first")
    with pytest.raises(ObjectExists, match=r"^a/b: put_new failed: (status 412|there is a file)"):
        store.put_new("a/b", b"second")
    assert store.get("a/b") == b"first"


def test_one_of_many_racing_puts_wins(kind: Kind) -> None:
    if kind.name == "moto":
        pytest.skip("moto looks for the object and then writes it, without a lock")
    store = kind.open(PATIENT)
    won = [number for number, won in enumerate(raced(store, "a/race")) if won]
    assert len(won) == 1
    assert store.get("a/race") == b"%d" % won[0]


def raced(store: ObjectStore, key: str) -> list[bool]:
    """True for each racer that made the object."""
    start = threading.Barrier(RACERS)

    def put(number: int) -> bool:
        start.wait()
        try:
            store.put_new(key, b"%d" % number)
        except ObjectExists:
            return False
        return True

    with ThreadPoolExecutor(RACERS) as racers:
        return [*racers.map(put, range(RACERS))]


def test_the_store_proves_that_it_creates_only(store: ObjectStore) -> None:
    prove_create_only(store, "probe/0123456789abcdef")
    assert keys_of(store) == []


@pytest.mark.parametrize("size", [0, 1, 8 * MIB, 8 * MIB + 1, 20 * MIB])
def test_a_file_goes_up_in_parts(store: ObjectStore, size: int) -> None:
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    step = 700_001
    store.put_file("topics/t/f.log", (data[at : at + step] for at in range(0, size, step)), size)
    assert store.get("topics/t/f.log") == data
    [found] = store.list("")
    assert (found.key, found.size_bytes) == ("topics/t/f.log", size)


def test_an_upload_that_fails_leaves_no_parts(kind: Kind) -> None:
    """A process that is killed in one does: a lifecycle rule of the bucket ends those."""
    if kind.server is None:
        pytest.skip("a store in memory has no parts")
    store = kind.open()
    before = unfinished_uploads(kind.server)

    def parts() -> Iterator[bytes]:
        for _ in range(3):
            yield bytes(9 * MIB)
        raise DiskError("/data/t-0/0.log", "read", "Input/output error", 5)

    with pytest.raises(DiskError):
        store.put_file("f", parts(), 40 * MIB)
    assert unfinished_uploads(kind.server) == before


@pytest.mark.parametrize("size", [3, 10 * MIB])
@pytest.mark.parametrize("wrong_by", [-1, 1])
def test_a_file_of_another_size_is_not_made(store: ObjectStore, size: int, wrong_by: int) -> None:
    with pytest.raises(StoreError, match="its parts have"):
        store.put_file("f", iter([bytes(size)]), size + wrong_by)
    assert keys_of(store) == []


def test_a_file_whose_parts_cannot_be_read_is_not_made(store: ObjectStore) -> None:
    def parts() -> Iterator[bytes]:
        yield bytes(9 * MIB)
        raise DiskError("/data/t-0/0.log", "read", "Input/output error", 5)

    with pytest.raises(DiskError, match="Input/output error") as found:
        store.put_file("f", parts(), 20 * MIB)
    assert not isinstance(found.value, StoreError)
    assert keys_of(store) == []


def test_ranges_end_where_the_object_does(store: ObjectStore) -> None:
    store.put_new("a", b"0123456789")
    ranges = {(0, 1): b"0", (0, 10): b"0123456789", (9, 1): b"9", (3, 4): b"3456"}
    beyond = {(5, 10): b"56789", (9, 2): b"9", (10, 1): b"", (11, 5): b"", (0, MIB): b"0123456789"}
    for (position, size), expected in (ranges | beyond).items():
        assert store.get_range("a", position, size) == expected
        assert b"".join(store.pieces("a", position, size)) == expected
    store.put_new("empty", b"")
    assert store.get_range("empty", 0, 1) == b""


def test_ranges_of_a_large_object_are_its_bytes(store: ObjectStore) -> None:
    data = random.Random(0).randbytes(12 * MIB)
    store.put_file("f", iter([data]), len(data))
    for position in (0, 1, 8 * MIB - 3, 8 * MIB, 12 * MIB - MIB):
        assert store.get_range("f", position, MIB) == data[position : position + MIB]
    assert b"".join(store.pieces("f", 7, 11 * MIB)) == data[7 : 11 * MIB + 7]


def test_objects_that_are_not_there_are_missing(store: ObjectStore) -> None:
    with pytest.raises(
        ObjectMissing, match=r"^no/such: get failed: (status 404 NoS|there is no such)"
    ):
        store.get("no/such")
    with pytest.raises(ObjectMissing):
        store.get_range("no/such", 0, 1)


def test_a_list_of_many_objects_is_in_order(kind: Kind, store: ObjectStore) -> None:
    count = 1100 if kind.name == "moto" else 2500  # more than a page; moto is slow
    keys = [f"topics/t/0/manifest/{number:020}.json" for number in range(count)]
    with ThreadPoolExecutor(8) as hands:
        list(hands.map(lambda key: store.put_new(key, b"x"), reversed(keys)))
    store.put_new("topics/t/0/manifest2", b"x")
    folder = "topics/t/0/manifest/"
    assert keys_of(store, folder) == keys
    for last in (0, 34, count - 2, count - 1):
        assert keys_of(store, folder, keys[last]) == keys[last + 1 :]
    assert keys_of(store, folder, f"{folder}{34:020}.jso") == keys[34:]
    store.delete([*keys[:-1], "no/such"])
    assert keys_of(store, "topics/") == [keys[-1], "topics/t/0/manifest2"]


def test_a_list_has_whole_folders_at_whatever_depth(store: ObjectStore) -> None:
    keys = ("a/1", "a/b/1", "a/b/2", "a-b/1", "a.b/1", "ab/1", "b")
    for key in keys:
        store.put_new(key, b"12")
    assert sorted(keys_of(store)) == sorted(keys)
    assert sorted(keys_of(store, "a/")) == ["a/1", "a/b/1", "a/b/2"]
    assert keys_of(store, "a/b/") == ["a/b/1", "a/b/2"]
    assert keys_of(store, "c/") == []
    assert {each.size_bytes for each in store.list("")} == {2}


def test_times_of_objects_are_by_one_clock(store: ObjectStore) -> None:
    store.put_new("a", b"1")
    store.put_new("b", b"1")
    first, second = store.list("")
    assert 0 <= second.modified_ms - first.modified_ms < 60_000


def test_removed_objects_are_gone_and_missing_ones_no_error(store: ObjectStore) -> None:
    for key in ("a", "b", "c/d"):
        store.put_new(key, b"1")
    store.delete([])
    store.delete(["a", "no/such", "c/d"])
    assert keys_of(store) == ["b"]
    store.delete(["no/such"])
    store.put_new("a", b"2")
    assert store.get("a") == b"2"


@pytest.mark.parametrize("topic", ODD_TOPICS)
def test_names_of_topics_are_names_of_folders(store: ObjectStore, topic: str) -> None:
    keys = [f"topics/{topic}/{uuid4()}/{partition}/{0:020}-00ff.log" for partition in range(2)]
    for key in keys:
        store.put_new(key, key.encode())
        assert store.get(key) == key.encode()
    assert sorted(keys_of(store, f"topics/{topic}/")) == sorted(keys)


def test_two_places_of_one_bucket_do_not_see_each_other(kind: Kind) -> None:
    one, other = kind.open(), kind.open()
    one.put_new("a", b"1")
    other.put_new("a", b"2")
    assert (one.get("a"), other.get("a")) == (b"1", b"2")
    other.delete(["a"])
    assert keys_of(one) == ["a"]


@pytest.mark.parametrize("wrong", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_wrong_credentials_are_denied(seaweed: S3Server, wrong: str) -> None:
    store = seaweed.open("test/denied", **{wrong: "PLANTEDNOTTHERIGHTONE"})
    for text in failures(store, StoreDenied):
        assert "status 403" in text
        assert "PLANTED" not in text
        assert SECRET_KEY not in text


def test_moto_lets_everybody_in(moto_server: S3Server) -> None:
    """Credentials are checked by SeaweedFS alone; once moto does, the test above is for it too."""
    store = moto_server.open("test/denied", AWS_SECRET_ACCESS_KEY="not the right one")
    store.put_new("a", b"1")
    assert store.get("a") == b"1"


def test_a_bucket_that_is_not_there_is_no_missing_object(seaweed: S3Server) -> None:
    store = seaweed._replace(bucket="no-such-bucket").open("test")
    for text in failures(store, StoreDenied):
        assert "NoSuchBucket" in text or "delete failed" in text


def test_a_store_that_answers_nothing_is_waited_for_as_long_as_the_limit(
    seaweed: S3Server,
) -> None:
    store = seaweed.open("test/frozen")
    store.put_new("a", b"1")
    with seaweed.frozen():
        for text in failures(seaweed.open("test/frozen", QUICK), StoreError):
            assert text.endswith("it did not answer in time")
    assert store.get("a") == b"1"


def test_a_store_that_has_ended_cannot_be_reached() -> None:
    with moto() as server:
        store = server.open("test")
        store.put_new("a", b"1")
    for text in failures(store, StoreError):
        assert "failed: " in text
        assert server.keys[1] not in text


def failures(store: ObjectStore, kind: type[StoreError]) -> list[str]:
    """Text of the error of each call."""
    calls = {
        "put_new": lambda: store.put_new("x", b"1"),
        "put_file": lambda: store.put_file("x", iter([bytes(9 * MIB)]), 9 * MIB),
        "get": lambda: store.get("x"),
        "get_range": lambda: store.get_range("x", 0, 1),
        "pieces": lambda: next(store.pieces("x", 0, 1)),
        "list": lambda: next(store.list("x/"), None),
        "delete": lambda: store.delete(["x", "y"]),
    }
    found = []
    for call in calls.values():
        with pytest.raises(StoreError) as failed:
            call()
        assert isinstance(failed.value, kind)
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
        found.append(str(failed.value))
    return found
