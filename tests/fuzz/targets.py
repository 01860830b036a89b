"""What is fuzzed: each target takes any bytes and lets nothing out but the errors it may raise.

A target that returns has held: no other exception, and what its function promises of the result.
"""

import contextlib
import functools
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final

from broker.groups.classic.subscription import topics_of
from broker.groups.records import classic as group_records
from broker.quotas import quota_file
from broker.telemetry.payload import MOST_POINTS, read_push
from broker.telemetry.points import ClientName
from broker.transactions import producer_ids, transaction_records
from config import overrides, quantities
from config.errors import ConfigError
from config.properties import read_properties
from config.yaml_text import read_yaml
from protocol.api import Api
from protocol.codec import decode, encode_bytes
from protocol.errors import DecodeError, KafkaError
from protocol.headers import parse_request_header, versions_of
from protocol.records.batch import HEADER_BYTES, LENGTH_ENDS, read_header, seal
from protocol.records.compression import Codec, inflate
from protocol.records.markers import marker_of
from protocol.records.old_formats.convert import down_convert, up_convert
from protocol.records.record import read_records
from protocol.records.scan import find_next_batch, scan_batches
from protocol.records.walk import (
    Outline,
    check_records,
    find_between,
    find_timestamp,
    outline_records,
)
from protocol.registry import apis
from storage.directory import topics_file
from storage.errors import StorageError
from tests.fuzz.directory import start_on

Target = Callable[[bytes], None]
LIMIT_BYTES: Final = 1 << 20
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@functools.cache
def versions() -> Sequence[tuple[Api, int]]:
    return [
        (api, version)
        for api in apis().values()
        for version in range(api.min_version, api.max_version + 1)
    ]


def request_headers(data: bytes) -> None:
    """The header of a request."""
    with contextlib.suppress(DecodeError):
        parse_request_header(memoryview(data), versions_of(apis().values()))


def requests(data: bytes) -> None:
    """The body of a request of any API and version; what is read can be written again."""
    if len(data) < 2:
        return
    api, version = versions()[int.from_bytes(data[:2], "big") % len(versions())]
    with contextlib.suppress(DecodeError):
        message: Any = decode(api.request, version, memoryview(data), 2)
        written = encode_bytes(message, version)
        again = decode(api.request, version, memoryview(written))
        assert encode_bytes(again, version) == written, f"{api.name} {version} changes when written"


def batches(data: bytes) -> None:
    """A record batch, as it comes and with its checksum made right."""
    for batch in (data, _sealed(data)):
        with contextlib.suppress(DecodeError):
            read_records(memoryview(batch), limit_bytes=LIMIT_BYTES)
        if len(batch) >= HEADER_BYTES:
            with contextlib.suppress(DecodeError):
                marker_of(memoryview(batch))


def _sealed(data: bytes) -> bytearray:
    """The bytes as a batch of format 2 with a right length and checksum."""
    batch = bytearray(data)
    if len(batch) >= HEADER_BYTES:
        batch[8:12] = (len(batch) - LENGTH_ENDS).to_bytes(4, "big")
        batch[16] = 2
        seal(batch, 0, len(batch))
    return batch


def walkers(data: bytes) -> None:
    """The records inside of a batch, with any count."""
    if not data:
        return
    payload, count = data[1:], data[0] % 32 - 3
    room = array("q", bytes(8 * len(Outline._fields) * max(count, 0)))
    calls: Sequence[Callable[[], object]] = (
        lambda: check_records(payload, count, 0, INT64_MIN, INT64_MAX),
        lambda: outline_records(payload, 0, 0, count, INT64_MAX, room),
        lambda: find_timestamp(payload, count, INT64_MAX, 0, 5, 0),
        lambda: find_between(payload, count, 0, INT64_MIN, 0, 5, 0, 9, True),
    )
    for call in calls:
        with contextlib.suppress(DecodeError):
            call()


def logs(data: bytes) -> None:
    """A stretch of a `.log`."""
    with contextlib.suppress(DecodeError):
        scan_batches(data)
    find_next_batch(data, 0)


def conversions(data: bytes) -> None:
    """Sets of formats 0 and 1, and batches for clients that know nothing else."""
    with contextlib.suppress(DecodeError):
        up_convert(memoryview(data), limit_bytes=LIMIT_BYTES)
    batch = memoryview(_sealed(data))
    if len(batch) < HEADER_BYTES:
        return
    for magic in (0, 1):
        with contextlib.suppress(DecodeError):
            down_convert(
                batch, read_header(batch), magic, from_offset=0, room=LIMIT_BYTES,
                limit_bytes=LIMIT_BYTES,
            )  # fmt: skip


def codecs(data: bytes) -> None:
    """Packed bytes of any codec; never more than the limit comes of them."""
    if not data:
        return
    packed = [codec for codec in Codec if codec]
    with contextlib.suppress(DecodeError):
        unpacked = inflate(packed[data[0] % len(packed)], data[1:], limit_bytes=LIMIT_BYTES)
        assert len(unpacked) <= LIMIT_BYTES


def state_records(data: bytes) -> None:
    """Records of groups and of transactions, and what members of groups say they read."""
    if not data:
        return
    key, value = data[1 : 1 + data[0]], data[1 + data[0] :]
    for read in (group_records.read_row, transaction_records.read_row):
        with contextlib.suppress(DecodeError):
            read(key, value or None)
    topics_of(data)


def state_files(data: bytes) -> None:
    """The broker's own files: topics, quotas, producer ids, settings that clients have made."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(StorageError):
        topics_file.parse(data)
    with contextlib.suppress(StorageError):
        quota_file.parse("quotas", text)
    with contextlib.suppress(StorageError):
        producer_ids.parse("ids", text)
    with contextlib.suppress(ConfigError):
        overrides.restore(text)


def pushes(data: bytes) -> None:
    """Metrics that a client pushes, in any codec."""
    if data:
        codec = tuple(Codec)[data[0] % len(Codec)]
        with contextlib.suppress(KafkaError):
            read = read_push(codec, data[1:], LIMIT_BYTES, ClientName("c", "i"))
            assert len(read.points) <= read.looked_at <= MOST_POINTS


def settings(data: bytes) -> None:
    """Files of settings, and instants and durations as people write them."""
    text = data.decode("utf-8", "replace")
    for read in (read_properties, read_yaml):
        with contextlib.suppress(ValueError):
            list(read(text))
    with contextlib.suppress(ValueError):
        quantities.parse_instant(text, 1_700_000_000_000)
    with contextlib.suppress(ValueError):
        quantities.parse_duration(text)


def starts(data: bytes) -> None:
    """A start on a data directory in which one file holds these bytes."""
    with contextlib.suppress(StorageError):
        start_on(data)


SINGLE: Final[dict[str, Target]] = {
    each.__name__: each
    for each in (
        request_headers, requests, batches, walkers, logs, conversions, codecs, state_records,
        state_files, settings, starts, pushes,
    )
}  # fmt: skip


def everything(data: bytes) -> None:
    """Any of them: the first byte says which."""
    if data:
        tuple(SINGLE.values())[data[0] % len(SINGLE)](data[1:])


TARGETS: Final[dict[str, Target]] = {**SINGLE, "everything": everything}
