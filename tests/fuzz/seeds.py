"""Sound inputs of every target, from which the fuzzer goes on; what writes them makes them."""

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from broker.groups.records.classic import OffsetCommitValue, offset_key, offset_value
from protocol.codec import encode_bytes
from protocol.headers import request_header_bytes
from protocol.records.batch import HEADER_BYTES
from protocol.records.builder import build_batch
from protocol.records.compression import Codec, deflate
from protocol.records.old_formats.legacy_builder import build_set
from storage.directory import topics_file
from tests.fuzz.directory import made
from tests.fuzz.targets import SINGLE, versions
from tests.support.records.pushes import gauge, histogram, point, push_of, total

ROWS: Any = [(5, b"k", b"v", [("h", b"x")]), (6, None, b"", [])]
SEEDS_OF_ONE = 10
CORPUS = Path(__file__).with_name("corpus")


def seeds_of(target: str) -> Iterator[bytes]:
    """Sound inputs of that target, and those that were kept."""
    yield from _MADE.get(target, lambda: iter(()))()
    folder = CORPUS / target
    if folder.is_dir():
        yield from (path.read_bytes() for path in sorted(folder.iterdir()))


def write_seeds(target: str, folder: Path) -> None:
    """Put them into a folder, a file each."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in zip(count(), seeds_of(target), strict=False):
        (folder / f"seed-{number}").write_bytes(data)


def _everything() -> Iterator[bytes]:
    for number, name in enumerate(SINGLE):
        for data in islice(seeds_of(name), SEEDS_OF_ONE):
            yield bytes([number]) + data


def _pushes() -> Iterator[bytes]:
    data = push_of(
        gauge("org.apache.kafka.producer.m", point(1.5, {"node_id": 1})),
        total("n", point(2.0)),
        histogram("h"),
        resource={"group.id": "g"},
    )
    for number, codec in enumerate(Codec):
        yield bytes([number]) + deflate(codec, data)


def _headers() -> Iterator[bytes]:
    for api, version in versions():
        yield request_header_bytes(api, version, 7, "client")


def _requests() -> Iterator[bytes]:
    for number, (api, version) in enumerate(versions()):
        yield number.to_bytes(2, "big") + encode_bytes(api.request(), version)


def _batches() -> Iterator[bytes]:
    for codec in Codec:
        yield bytes(build_batch(ROWS, codec=codec))
    yield bytes(build_batch(ROWS, producer_id=9, producer_epoch=0, base_sequence=0))


def _walkers() -> Iterator[bytes]:
    yield bytes([5]) + bytes(build_batch(ROWS)[HEADER_BYTES:])


def _conversions() -> Iterator[bytes]:
    rows = [(0, 5, b"k", b"v"), (1, 6, None, b"w")]
    for magic in (0, 1):
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            yield bytes(build_set(rows, magic, codec=codec))
    yield from _batches()


def _codecs() -> Iterator[bytes]:
    for number, codec in enumerate(each for each in Codec if each):
        yield bytes([number]) + deflate(codec, b"abcabcabc" * 40)


def _state_records() -> Iterator[bytes]:
    key = offset_key("group", "topic", 0)
    value = offset_value(OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7))
    yield bytes([len(key)]) + key + value


def _state_files() -> Iterator[bytes]:
    yield topics_file.render(topics_file.CatalogState({}, frozenset()))
    quotas = '[{"entity": {"user": "a"}, "limits": {"producer_byte_rate": 9}}]'
    yield f'{{"format": 1, "quotas": {quotas}}}'.encode()
    yield b'{"format": 1, "reserved_below": 1000}'


def _settings() -> Iterator[bytes]:
    yield b"log.retention.ms=5\nlisteners = PLAINTEXT://:9092\\\n , X\n# c\n! d\na:b\\u0041"
    yield b"log:\n  retention.ms: 5\nnode.id: 1\n"
    yield from (b"2026-01-02T03:04:05Z", b"-5m", b"1h30m", b"now", b"1700000000000")


def _starts() -> Iterator[bytes]:
    for cleanly in (False, True):
        fs, paths = made(cleanly=cleanly)
        for number, path in enumerate(paths):
            yield bytes([number << 1 | cleanly]) + fs.read_bytes(path)


_MADE = {
    "everything": _everything,
    "request_headers": _headers,
    "requests": _requests,
    "batches": _batches,
    "walkers": _walkers,
    "logs": _batches,
    "conversions": _conversions,
    "codecs": _codecs,
    "state_records": _state_records,
    "state_files": _state_files,
    "settings": _settings,
    "starts": _starts,
    "pushes": _pushes,
}
