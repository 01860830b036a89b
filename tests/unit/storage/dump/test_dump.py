"""What `dump_file` gives of sound files, of damaged ones, and of files that are none of ours."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.dump.by_name import UnknownFile, dump_file
from storage.dump.log import Detail
from storage.dump.rows import Damage, Row
from storage.errors import FileMissing
from storage.posix import real_env
from storage.zones.rows import UNTIMED, Zone, pack_row
from tests.support.records.partition_samples import write_samples

EVERYTHING = Detail(records=True, contents=True)
LOG = f"{0:020d}.log"


def dump(path: Path, detail: Detail = EVERYTHING) -> tuple[list[Row], list[Damage]]:
    rows: list[Row] = []
    damages: list[Damage] = []
    for each in dump_file(real_env().fs, str(path), detail):
        (rows if isinstance(each, Row) else damages).append(each)  # type: ignore[arg-type]
    return rows, damages


def batches(count: int, size: int = 100, codec: Codec = Codec.NONE) -> list[bytes]:
    return [
        bytes(build_batch([(1000 + i, b"k", bytes(size))], base_offset=i, codec=codec))
        for i in range(count)
    ]


def written(tmp_path: Path, data: bytes, name: str = LOG) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def offsets(rows: list[Row], kind: str = "record") -> list[object]:
    name = "offset" if kind == "record" else "baseOffset"
    return [row.fields[name] for row in rows if row.kind == kind]


def test_everything_that_a_partition_holds_is_sound(tmp_path: Path) -> None:
    for path in write_samples(tmp_path / "t-0"):
        rows, damages = dump(path)
        assert rows or not path.stat().st_size, path
        assert not damages, path


def test_zones_have_names_for_their_flags(tmp_path: Path) -> None:
    zone = Zone(0, 0, 7, UNTIMED, -5, 2**40, 100, 200)
    path = written(tmp_path, pack_row(zone), f"{40:020d}.zones")
    (row,), damages = dump(path)
    assert not damages
    assert row.fields == {
        "firstOffset": 40, "position": 0, "count": 7, "minTimestamp": -5, "maxTimestamp": 2**40,
        "firstArrival": 100, "lastArrival": 200, "flags": ["untimed"], "isvalid": True,
    }  # fmt: skip


def test_a_bad_crc_is_named_its_records_are_not_shown_and_the_rest_is(tmp_path: Path) -> None:
    data = bytearray(b"".join(batches(5)))
    size = len(data) // 5
    data[2 * size + 80] ^= 1
    rows, (damage,) = dump(written(tmp_path, bytes(data)))
    assert damage == Damage(2 * size, "the batch at offset 2 has a wrong CRC")
    assert [row.fields["isvalid"] for row in rows if row.kind == "batch"] == [
        True, True, False, True, True,
    ]  # fmt: skip
    assert offsets(rows) == [0, 1, 3, 4]


def test_behind_bytes_that_are_no_batch_the_dump_goes_on(tmp_path: Path) -> None:
    parts = batches(6)
    parts[2] = b"\x7f" * len(parts[2])
    rows, (damage,) = dump(written(tmp_path, b"".join(parts)))
    assert damage.position == 2 * len(parts[0])
    assert f"{len(parts[2])} bytes are no batch" in damage.why
    assert offsets(rows) == [0, 1, 3, 4, 5]


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (bytes(700), "zeros to the end"),
        (b"\xff" * 700, "the last 700 bytes are no batch"),
        (batches(4)[3][:90], "cut off: 90 of"),
        (batches(4)[3][:20], "fewer bytes than a batch header has"),
        (b"\0" * 8 + b"\0\0\0\1" + b"\0" * 9, "no room for its own fields"),
    ],
)
def test_a_bad_tail_is_counted_and_explained(tmp_path: Path, tail: bytes, why: str) -> None:
    good = b"".join(batches(3))
    rows, (damage,) = dump(written(tmp_path, good + tail))
    assert damage.position == len(good)
    assert why in damage.why
    assert offsets(rows) == [0, 1, 2]
    assert rows[-1].fields in ({"invalidBytes": len(tail)}, {"baseOffset": 0})


def test_records_that_do_not_unpack_are_one_damage(tmp_path: Path) -> None:
    good, bad = batches(2, codec=Codec.GZIP)
    broken = bytearray(bad)
    from protocol.records.batch import seal

    broken[70:80] = bytes(10)
    seal(broken, 0, len(broken))
    rows, (damage,) = dump(written(tmp_path, good + broken))
    assert damage.position == len(good)
    assert "cannot be read" in damage.why
    assert offsets(rows, "batch") == [0, 1]
    assert offsets(rows) == [0]


@pytest.mark.parametrize(
    ("name", "data", "position", "why"),
    [
        (".index", bytes.fromhex("00000009 00000100 00000005 00000200"), 8, "does not rise"),
        (".index", bytes.fromhex("00000009 00000100 0000"), 8, "the last 2 bytes"),
        (".index", bytes.fromhex("00000009 00000100") + bytes(8) + b"\1" * 8, 8, "not zeros only"),
        (".timeindex", bytes.fromhex("0000000000000009 00000001" * 2), 12, "goes backwards"),
        (".txnindex", b"\0\1" + bytes(32), 0, "version 1"),
        (".txnindex", bytes(34) + bytes(34), 34, "is not after"),
        (".zones", pack_row((0, 0, 1, 0, 0, 0, 0, 0))[:-1] + b"\0", 0, "wrong CRC"),
        (".snapshot", bytes(40), 0, "version 0"),
        (".snapshot", b"", 0, "no snapshot"),
    ],
)
def test_damage_beside_the_log_is_named_where_it_begins(
    tmp_path: Path, name: str, data: bytes, position: int, why: str
) -> None:
    _, damages = dump(written(tmp_path, data, f"{0:020d}{name}"))
    assert damages[0].position == position
    assert why in damages[0].why


@pytest.mark.parametrize("text", ["0\n2\n0 0\n", "1\n0\n", "0\n1\nx 0\n", "0"])
def test_a_checkpoint_is_shown_whole_or_not_at_all(tmp_path: Path, text: str) -> None:
    rows, damages = dump(written(tmp_path, text.encode(), "leader-epoch-checkpoint"))
    assert not rows
    assert len(damages) == 1


def test_checkpoints_of_the_directory_are_shown(tmp_path: Path) -> None:
    path = written(tmp_path, b"0\n1\norders 3 77\n", "recovery-point-offset-checkpoint")
    (row,), _ = dump(path)
    assert row.fields == {"topic": "orders", "partition": 3, "offset": 77}


@pytest.mark.parametrize("name", ["notes.txt", "12.log", "partition.metadata", f"{0:020d}.xyz"])
def test_other_files_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownFile, match="its name is none of"):
        dump(written(tmp_path, b"", name))


def test_a_file_that_waits_for_its_end_is_dumped_like_any_other(tmp_path: Path) -> None:
    rows, _ = dump(written(tmp_path, batches(1)[0], LOG + ".deleted"))
    assert offsets(rows) == [0]


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        dump(tmp_path / LOG)


def consumed(rows: Iterator[object]) -> int:
    return sum(1 for _ in rows)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """32 MiB, of which one batch is 8 MiB: the window and that one batch are all there is."""
    path = written(tmp_path, b"".join([*batches(3000, size=8000), *batches(1, size=8 << 20)]))
    tracemalloc.start()
    try:
        count = consumed(dump_file(real_env().fs, str(path), Detail(records=True)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 1 + 2 * 3001
    assert peak < 40 << 20
