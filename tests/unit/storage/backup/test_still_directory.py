"""A directory as it was: what of it may change, what is kept in memory, and what is refused."""

import pytest

from storage.backup import still_directory
from storage.backup.checked_store import CheckedStore
from storage.backup.still_directory import StillDirectory, has_traces, is_replaced, look
from storage.backup.still_file import DirectoryChanged
from storage.env import DirEntry
from storage.errors import DiskError, FileMissing, NoSpace
from tests.support.disk.simdisk import SimFileSystem
from tests.support.tier.memory_store import MemoryStore

PATH = "/data/t-0"
SMALL, LOG, INDEX = "partition.metadata", "00000000000000000000.log", "00000000000000000000.index"


def names(**sizes: int) -> dict[str, DirEntry]:
    """`.log` files by base offset, and files with an ending behind a doubled underscore."""
    found = {}
    for key, size in sizes.items():
        base, _, ending = key.removeprefix("at_").partition("__")
        name = f"{int(base):020d}.log" + (f".{ending}" if ending else "")
        found[name] = DirEntry(name, is_dir=False, size_bytes=size, mtime_ms=size)
    return found


@pytest.mark.parametrize(
    ("now", "is_another"),
    [
        (names(at_0=10, at_5=10, at_9=4), False),
        (names(at_0=10, at_5=10, at_9=8), False),
        (names(at_0=10, at_5=10, at_9=8, at_12=3), False),
        (names(at_5=10, at_9=4), False),
        (names(at_9=4, at_12=3), False),
        (names(at_12=3), False),
        (names(at_0=20, at_9=4), True),
        (names(at_0=10, at_9=4), True),
        (names(at_0=9, at_5=10, at_9=4), True),
        (names(at_0=10, at_5=10, at_9=3), True),
        (names(at_0=10, at_5=10), True),
    ],
)
def test_what_counts_as_replaced(now: dict[str, DirEntry], *, is_another: bool) -> None:
    assert is_replaced(names(at_0=10, at_5=10, at_9=4), now, 9) is is_another


def test_compaction_of_what_was_the_last_segment() -> None:
    before, now = names(at_0=10, at_9=4), names(at_0=10, at_9=8, at_12=3)
    assert not is_replaced(before, now, 9)
    assert is_replaced(before, now, 10)
    assert is_replaced(before, now | names(at_9__deleted=4), 9)
    assert not is_replaced(before, now | names(at_0__deleted=4), 9)


@pytest.mark.parametrize(
    ("found", "has_been"),
    [
        (names(at_5=10, at_9=4), False),
        (names(at_0__deleted=3, at_5=10, at_9=4), False),
        (names(at_5=10, at_5__deleted=4), True),
        (names(at_5=10, at_7__deleted=4), True),
        (names(at_5=10, at_5__swap=4), True),
        (names(at_5=10, at_5__cleaned=4), True),
    ],
)
def test_traces_of_compaction(found: dict[str, DirEntry], *, has_been: bool) -> None:
    assert has_traces(found) is has_been


def test_nothing_is_named_after_a_change() -> None:
    inner, is_changed = MemoryStore(), False
    store = CheckedStore(inner, lambda: is_changed)
    store.put_new("a/1.json", b"one")
    is_changed = True
    with pytest.raises(DirectoryChanged, match="was replaced while it was read"):
        store.put_new("a/2.json", b"two")
    assert store.get("a/1.json") == b"one"
    assert list(inner.objects) == ["a/1.json"]


@pytest.fixture
def fs() -> SimFileSystem:
    made = SimFileSystem()
    made.make_dir(PATH)
    for name, data in ((SMALL, b"small"), (LOG, b"0123456789"), (INDEX, b"index")):
        made.write_atomically(f"{PATH}/{name}", data)
    return made


@pytest.fixture
def still(fs: SimFileSystem) -> StillDirectory:
    return StillDirectory(fs, PATH, look(fs, PATH), frozenset())


def test_changes_stay_in_memory(fs: SimFileSystem, still: StillDirectory) -> None:
    before = fs.fingerprint()
    file = still.open(f"{PATH}/{INDEX}")
    file.write_at(3, b"EX and more")
    file.sync()
    still.write_atomically(f"{PATH}/new", b"new")
    still.rename(f"{PATH}/{INDEX}", f"{PATH}/other")
    still.set_mtime(f"{PATH}/other", 5)
    still.open(f"{PATH}/{LOG}").truncate(4)
    still.remove(f"{PATH}/{SMALL}")
    assert still.read_bytes(f"{PATH}/other") == b"indEX and more"
    assert still.read_bytes(f"{PATH}/{LOG}") == b"0123"
    found = {each.name: (each.size_bytes, each.mtime_ms) for each in still.list_dir(PATH)}
    assert found.keys() == {LOG, "other", "new"}
    assert found["other"] == (14, 5)
    with pytest.raises(FileMissing):
        still.open(f"{PATH}/{INDEX}")
    assert fs.fingerprint() == before


def test_what_came_later_is_not_seen(fs: SimFileSystem, still: StillDirectory) -> None:
    fs.open(f"{PATH}/{LOG}").write_at(10, b"more")
    fs.write_atomically(f"{PATH}/{SMALL}", b"another")
    assert still.read_bytes(f"{PATH}/{LOG}") == b"0123456789"
    assert still.read_text(f"{PATH}/{SMALL}") == "small"


def test_a_file_that_went_is_no_missing_file(fs: SimFileSystem, still: StillDirectory) -> None:
    fs.remove(f"{PATH}/{INDEX}")
    with pytest.raises(DirectoryChanged) as error:
        still.read_bytes(f"{PATH}/{INDEX}")
    assert not isinstance(error.value, FileMissing)
    file = still.open(f"{PATH}/{LOG}")
    fs.open(f"{PATH}/{LOG}").truncate(3)
    with pytest.raises(DirectoryChanged, match="it ends at 3"):
        file.read_at(0, 10)
    assert file.read_at(0, 3) == b"012"


def test_memory_has_a_limit(still: StillDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(still_directory, "MEMORY_BYTES", 100)
    file = still.open(f"{PATH}/new", create=True)
    file.write_at(0, bytes(90))
    with pytest.raises(NoSpace, match="at most 100 bytes"):
        file.write_at(90, bytes(20))
    assert file.size() == 90


def test_the_directory_itself_is_not_changed(still: StillDirectory) -> None:
    for refused in (still.make_dir, still.remove_tree, still.lock):
        with pytest.raises(DiskError):
            refused(PATH)
