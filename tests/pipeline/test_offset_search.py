"""An offset index is a hint: whatever it says, no record is left out; where it is right it helps.

A read begins and a plan is cut where an entry leads; the log itself says whether there is a batch.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from pipeline.sources.log_views import views_in
from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks
from storage.files.layout import LOG, OFFSET_INDEX, ZONES
from tests.support.spark.pipeline_logs import HOUR_MS, NOON_MS, directory_log, disordered, read_all

ENTRY = 8
RANGES = 12


def as_it_is(content: bytes) -> bytes:
    return content


def open_in_kafka(content: bytes) -> bytes:
    """As long as `segment.index.bytes` has it, until the segment is closed."""
    return content.ljust(8192, b"\0")


def shuffled(content: bytes) -> bytes:
    entries = [content[at : at + ENTRY] for at in range(0, len(content), ENTRY)]
    random.Random(5).shuffle(entries)
    return b"".join(entries)


def of_another_log(content: bytes) -> bytes:
    """Rising, and wrong."""
    return b"".join(pack(">ii", 3 * at, 61 * at) for at in range(1, len(content) // ENTRY))


def before_the_begin(content: bytes) -> bytes:
    return pack(">ii", -4, -4000) * (len(content) // ENTRY)


def torn(content: bytes) -> bytes:
    return content[: len(content) // 2 + 3]


def noise(content: bytes) -> bytes:
    return random.Random(7).randbytes(len(content))


def empty(_: bytes) -> bytes:
    return b""


CHANGES = (as_it_is, open_in_kafka, shuffled, of_another_log, before_the_begin, torn, noise, empty)


def change_indexes(folder: Path, change: Callable[[bytes], bytes]) -> None:
    for path in folder.glob(f"*{OFFSET_INDEX}"):
        path.write_bytes(change(path.read_bytes()))


def asked(folder: Path, **more: object) -> dict[str, str]:
    return {"log_dirs": str(folder), "subscribe": "t", **{k: str(v) for k, v in more.items()}}


@pytest.mark.parametrize("has_zones", [True, False], ids=["with zone maps", "time index only"])
@pytest.mark.parametrize("change", CHANGES)
def test_any_range_is_exact_whatever_the_index_says(
    tmp_path: Path, change: Callable[[bytes], bytes], *, has_zones: bool
) -> None:
    log = directory_log(tmp_path)
    known = disordered(log, 11)
    log.close()
    change_indexes(tmp_path / "t-0", change)
    if not has_zones:
        for path in (tmp_path / "t-0").glob(f"*{ZONES}"):
            path.unlink()
    dice = random.Random(2)

    for _ in range(RANGES):
        first, last = sorted(dice.choices(range(len(known)), k=2))
        low = NOON_MS + dice.randint(-HOUR_MS, 3 * HOUR_MS)
        rows = read_all(
            asked(
                tmp_path, startingOffsets=f'{{"t": {{"0": {first}}}}}',
                endingOffsets=f'{{"t": {{"0": {last}}}}}', minPartitions=dice.randint(1, 20),
            ),
            ["offset", "timestampMs"],
        )  # fmt: skip
        assert [tuple(row.values()) for row in rows] == known[first:last]
        times = {"startingTimestamp": low, "endingTimestamp": low + HOUR_MS}
        rows = read_all(asked(tmp_path, **times), ["offset", "timestampMs"])
        wanted = [(offset, at) for offset, at in known if low <= at < low + HOUR_MS]
        assert [tuple(row.values()) for row in rows] == wanted


@pytest.mark.parametrize("change", [as_it_is, open_in_kafka])
def test_a_segment_is_cut_where_its_index_knows_a_batch(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    log = directory_log(tmp_path)
    disordered(log, 11)
    log.close()
    change_indexes(tmp_path / "t-0", change)
    segments = len(list((tmp_path / "t-0").glob(f"*{LOG}")))

    tasks = plan_tasks(parse(asked(tmp_path, minPartitions=50)))

    assert sum(len(task) for task in tasks) > 3 * segments


@pytest.mark.parametrize("change", [as_it_is, open_in_kafka])
def test_the_end_of_a_log_is_found_from_its_last_entry(
    tmp_path: Path, change: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a copy that no watermark bounds: not all of the last segment is read for that."""
    log = directory_log(tmp_path)
    known = disordered(log, 11)
    log.close()
    change_indexes(tmp_path / "t-0", change)
    last = max((tmp_path / "t-0").glob(f"*{LOG}"))
    positions = []
    preadv = os.preadv

    def seen(number: int, buffers: list[memoryview], position: int, *flags: int) -> int:
        if Path(f"/proc/self/fd/{number}").readlink() == last:
            positions.append(position)
        return preadv(number, buffers, position, *flags)

    monkeypatch.setattr(os, "preadv", seen)

    (view,) = views_in([str(tmp_path)], ["t"])

    assert view.end_offset == known[-1][0] + 1
    assert min(positions) > 0
