"""Many generated partitions, put as files under two brokers, and what compaction leaves of them.

A directory is filled while its broker is stopped: by the bytes of `keyed_logs`, with a last small
segment behind them, so that all of them are closed. What is compared is every batch; what two
brokers may differ in is taken out, in `_comparable`.
"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from protocol.records.batch import DELETE_HORIZON, BatchHeader, crc_matches, iter_headers
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.record import Record, read_records
from storage.files.layout import CLEANER_OFFSETS_FILE, LOG, segment_name
from storage.posix import real_env
from tests.support.histories.histories import Settings
from tests.support.records.keyed_logs import NOW, TIMES, keyed_log

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
IDENTITY = "partition.metadata"
DAY_MS = 86_400_000


class Twin(NamedTuple):
    """One topic of one partition, the same on both sides."""

    topic: str
    seed: int

    @property
    def directory(self) -> str:
        """Its partition's, below a data directory."""
        return f"{self.topic}-0"

    @property
    def settings(self) -> Settings:
        """Compacted at once; tombstones go by the second run, or stay; some small segments."""
        dice = random.Random(f"settings {self.seed}")
        sizes = dice.choice((None, "700", "2000"))
        return {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0",
            "segment.ms": str(1000 * 365 * DAY_MS),  # our timer would end the last segment
            "delete.retention.ms": dice.choice(("0", str(DAY_MS))),
            **({"internal.segment.bytes": sizes} if sizes else {}),
        }


def twins(seed: int, count: int) -> list[Twin]:
    """So many topics."""
    return [Twin(f"cleaned-{number}", seed * 1_000_000 + number) for number in range(count)]


def fill(twin: Twin, data_dir: Path) -> None:
    """Generated segments in place of what a stopped broker has of the topic."""
    directory = data_dir / twin.directory
    _empty(directory)
    made = keyed_log(twin.seed, real_env(), str(directory))
    _write_segment(directory, made.end_offset, [_end_record(made.end_offset)])


def add_segment(twin: Twin, data_dir: Path) -> None:
    """One more closed segment behind those of a stopped broker, and a new last one."""
    directory = data_dir / twin.directory
    last = max(directory.glob(f"*{LOG}"))
    base = max(header.last_offset for _, header in iter_headers(last.read_bytes())) + 1
    dice = random.Random(f"more {twin.seed}")
    rows: list[NewRecord] = [
        (dice.choice(TIMES), b"k%d" % dice.randrange(6), dice.choice((None, b"new", b"newer")))
        for _ in range(dice.randint(1, 5))
    ]
    batch = build_batch(rows, base_offset=base, leader_epoch=0, codec=dice.choice(list(Codec)))
    _write_segment(directory, base, [bytes(batch)])
    _write_segment(directory, base + len(rows), [_end_record(base + len(rows))])


def exchange(all_twins: list[Twin], one: Path, other: Path) -> None:
    """Each of two stopped brokers gets the other's files of the topics; its identities stay."""
    for twin in all_twins:
        first, second = one / twin.directory, other / twin.directory
        kept = {path: (path / IDENTITY).read_bytes() for path in (first, second)}
        first.rename(one / "moving")
        second.rename(first)
        (one / "moving").rename(second)
        for path, identity in kept.items():
            (path / IDENTITY).write_bytes(identity)
    for name in (CLEANER_OFFSETS_FILE, "recovery-point-offset-checkpoint"):
        mine, theirs = (one / name).read_bytes(), (other / name).read_bytes()
        (one / name).write_bytes(theirs)
        (other / name).write_bytes(mine)


def batches_of(twin: Twin, data_dir: Path) -> dict[int, tuple[Any, list[Record]]]:
    """Comparable facts of each batch, by its base offset."""
    found: dict[int, tuple[Any, list[Record]]] = {}
    for path in sorted((data_dir / twin.directory).glob(f"*{LOG}")):
        data = memoryview(path.read_bytes())
        for position, header in iter_headers(data):
            assert crc_matches(data, position, header)
            batch = data[position : position + header.size_bytes]
            assert header.base_offset not in found
            found[header.base_offset] = _comparable(header), read_records(batch)
    return found


def bases_of(twin: Twin, data_dir: Path) -> list[str]:
    """Bases of its segments."""
    return sorted(path.stem for path in (data_dir / twin.directory).glob(f"*{LOG}"))


def clean_parts(data_dir: Path) -> dict[str, int]:
    """End of the clean part of each topic, as a broker has written it down."""
    path = data_dir / CLEANER_OFFSETS_FILE
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    rows = (line.split() for line in lines)
    return {topic: int(offset) for topic, _, offset in rows if topic.startswith("cleaned-")}


def temporary_files(data_dir: Path) -> Iterator[Path]:
    """Files of a compaction that should have gone."""
    for suffix in ("cleaned", "swap"):
        yield from data_dir.rglob(f"*.{suffix}")


def _comparable(header: BatchHeader) -> Any:
    """Without sizes, which are the libraries' matter, and what the times are counted from: the
    moment of a horizon, or with Kafka the first record that stayed. Whether a marker's time has
    begun to run depends on empty batches.
    """
    attributes = header.attributes & ~(DELETE_HORIZON if header.is_control else 0)
    return header._replace(length=0, crc=0, base_timestamp=0, attributes=attributes)


def _empty(directory: Path) -> None:
    for path in directory.iterdir():
        if path.name != IDENTITY:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _end_record(offset: int) -> bytes:
    row: NewRecord = (NOW, b"end", b"%d" % offset)
    return bytes(build_batch([row], base_offset=offset, leader_epoch=0))


def _write_segment(directory: Path, base: int, batches: list[bytes]) -> None:
    (directory / segment_name(base, LOG)).write_bytes(b"".join(batches))
