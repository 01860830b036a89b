"""The last offset of each key, and the records of a batch that stay: compiled, and as source."""

import importlib
from collections.abc import Sequence
from types import ModuleType

import pytest

from protocol.records import compact as built
from protocol.records.batch import HEADER_BYTES, InvalidRecords
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compact import ENTRY_BYTES, KeyMap
from protocol.records.record import Record, read_records
from tests.support.records.record_walkers import from_source

SECRET = bytes(range(16))


@pytest.fixture(params=["built", "source"])
def compact(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "built":
        return importlib.import_module("protocol.records.compact")
    return from_source("compact")


def key_map(compact: ModuleType, slots: int = 100, load_factor: float = 0.9) -> KeyMap:
    found: KeyMap = compact.KeyMap(bytearray(ENTRY_BYTES * slots), load_factor, SECRET)
    return found


def payload_of(rows: Sequence[NewRecord]) -> bytes:
    return bytes(build_batch(rows)[HEADER_BYTES:])


def keep(
    compact: ModuleType, keys: KeyMap, rows: Sequence[NewRecord], **rules: int
) -> tuple[list[Record], tuple[int, ...]]:
    """The records that stay of a batch at offset 100, and what was counted."""
    payload, out = payload_of(rows), bytearray(1 << 16)
    kept = compact.keep_records(
        keys, payload, len(rows), 100, rows[0][0],
        rules.get("mapped_before", 1000), bool(rules.get("drop_tombstones", 0)), out,
    )  # fmt: skip
    head = build_batch(rows, base_offset=100)
    head[57:61] = kept.count.to_bytes(4)
    head[8:12] = (HEADER_BYTES - 12 + kept.size_bytes).to_bytes(4)
    return read_records(
        memoryview(bytes(head[:HEADER_BYTES]) + bytes(out[: kept.size_bytes]))
    ), kept


@pytest.mark.skipif(not built.__file__.endswith(".so"), reason="the compiled hash needs a compiler")
@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45")],
)
def test_the_hash_is_siphash_2_4_128(size: int, expected: str) -> None:
    memory = bytearray(ENTRY_BYTES * 7)
    keys = KeyMap(memory, 0.9, SECRET)
    keys.put(bytes(range(size)), 5)
    entries = [memory[at : at + ENTRY_BYTES] for at in range(0, len(memory), ENTRY_BYTES)]
    assert [entry[:16].hex() for entry in entries if any(entry)] == [expected]


def test_the_map_knows_the_last_offset_of_every_key(compact: ModuleType) -> None:
    keys = key_map(compact, 5000)
    model: dict[bytes, int] = {}
    for offset in range(4000):
        key = b"%d" % (offset * 7919 % 2003) + bytes(offset % 40)
        assert keys.put(key, offset)
        model[key] = offset
    assert len(keys) == len(model)
    assert all(keys.get(key) == offset for key, offset in model.items())
    assert keys.get(b"never") == -1


@pytest.mark.parametrize("load_factor", [0.0, 0.5, 1.0])
def test_a_full_map_takes_no_new_key_and_still_answers(
    compact: ModuleType, load_factor: float
) -> None:
    keys = key_map(compact, 10, load_factor)
    taken = [number for number in range(30) if keys.put(b"%d" % number, number)]
    assert len(taken) == len(keys) == keys.capacity == {0.0: 1, 0.5: 5, 1.0: 9}[load_factor]
    assert keys.put(b"%d" % taken[0], 99), "a known key needs no room"
    assert keys.get(b"%d" % taken[0]) == 99
    assert keys.get(b"29") == -1


def test_mapping_stops_at_the_record_that_finds_no_room(compact: ModuleType) -> None:
    keys = key_map(compact, 4, 0.75)
    payload = payload_of([(1, b"%d" % (number % 4), b"") for number in range(8)])
    assert compact.map_keys(keys, payload, 8, 100, 0) == 103
    assert [keys.get(b"%d" % number) for number in range(4)] == [100, 101, 102, -1]


def test_only_keyed_records_from_the_first_dirty_offset_on_are_mapped(compact: ModuleType) -> None:
    keys = key_map(compact)
    payload = payload_of([(1, b"a", b"1"), (1, None, b"2"), (1, b"", b"3"), (1, b"b", None)])
    assert compact.map_keys(keys, payload, 4, 100, 101) == -1
    assert [keys.get(key) for key in (b"a", b"", b"b")] == [-1, 102, 103]


def test_what_stays_is_what_no_later_offset_supersedes(compact: ModuleType) -> None:
    keys = key_map(compact)
    keys.put(b"old", 500)
    keys.put(b"last", 101)
    rows: list[NewRecord] = [
        (10, b"old", b"1"),
        (20, b"last", b"2"),
        (-1, b"unmapped", b"3", [("h", b"4")]),
        (15, None, b"no key"),
        (99, b"gone", None),
    ]
    records, kept = keep(compact, keys, rows)
    assert [record.offset for record in records] == [101, 102, 104]
    assert records[1].headers == (("h", b"4"),)
    assert kept[2:] == (20, 99, 1, 1, 1), "smallest and largest time, untimed, tombstones, keyless"


def test_tombstones_go_when_their_time_is_up(compact: ModuleType) -> None:
    keys = key_map(compact)
    rows: list[NewRecord] = [(1, b"a", None), (2, b"b", b"")]
    assert [r.key for r in keep(compact, keys, rows, drop_tombstones=1)[0]] == [b"b"]
    assert [r.key for r in keep(compact, keys, rows)[0]] == [b"a", b"b"]


def test_what_was_not_mapped_stays_whatever_it_is(compact: ModuleType) -> None:
    keys = key_map(compact)
    keys.put(b"a", 500)
    rows: list[NewRecord] = [(1, b"a", b"1"), (1, b"a", None), (1, None, b"")]
    records, _ = keep(compact, keys, rows, mapped_before=101, drop_tombstones=1)
    assert [record.offset for record in records] == [101, 102]


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"", "its length"),
        (b"\x7f", "its length"),
        (b"\x02\x00", "its timestamp delta"),
        (b"\x04\x00\x00", "its offset delta"),
        (b"\x06\x00\x00\x01", "its offset delta"),
        (b"\x08\x00\x00\x00\x10", "its key"),
        (b"\x0a\x00\x00\x00\x01\x10", "its value"),
    ],
)
def test_a_damaged_record_is_named(compact: ModuleType, payload: bytes, says: str) -> None:
    keys = key_map(compact)
    for call in (
        lambda: compact.map_keys(keys, payload, 1, 0, 0),
        lambda: compact.keep_records(keys, payload, 1, 0, 0, 9, False, bytearray(99)),
    ):
        with pytest.raises(InvalidRecords, match=f"record 0: {says}"):
            call()


def test_a_time_outside_of_64_bits_is_damage(compact: ModuleType) -> None:
    payload = payload_of([(0, b"k", b""), (2**62, b"k", b"")])
    with pytest.raises(InvalidRecords, match="record 1: its timestamp"):
        compact.keep_records(key_map(compact), payload, 2, 0, 2**62, 9, False, bytearray(99))


def test_memory_that_holds_no_map_is_refused(compact: ModuleType) -> None:
    with pytest.raises(ValueError, match="hold no map"):
        compact.KeyMap(bytearray(ENTRY_BYTES), 0.9, SECRET)
