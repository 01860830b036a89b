"""What is unpacked or converted on one thread keeps no other from running for long."""

import threading
import time
from collections.abc import Callable

import pytest

from protocol.records.batch import payload_of, read_header
from protocol.records.builder import build_batch
from protocol.records.compression import Codec, InflateLimit, inflate
from protocol.records.old_formats import convert
from protocol.records.old_formats.convert import down_convert, up_convert
from protocol.records.old_formats.legacy_builder import build_message, wrap
from tests.support.worlds.inflating import NOW_MS, big_value

MIB = 1 << 20
TRIES = 5
LONGEST_PART = 1 / 8
"""Of the time that the work takes by itself, in the calmest of the tries, since the machine may be
busy. A twentieth where it is not; before it let others in: in the same order 1/2, 1/3 and 2/5."""


def longest_stop(work: Callable[[], object]) -> float:
    """Seconds for which this thread stood at most, while another did the work."""
    thread = threading.Thread(target=work)
    longest, last = 0.0, time.perf_counter()
    thread.start()
    while thread.is_alive():
        time.sleep(0.0005)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    thread.join()
    return longest


def unpack_snappy() -> Callable[[], object]:
    batch = memoryview(big_value(Codec.SNAPPY, 60 * MIB))
    packed = payload_of(batch, 0, read_header(batch))
    return lambda: inflate(Codec.SNAPPY, packed)


def take_old_messages() -> Callable[[], object]:
    one = build_message(0, 0, 0, None, b"")
    old = memoryview(wrap(one * (20 * MIB // len(one)), 0, Codec.GZIP, last_offset=0, timestamp=-1))
    return lambda: up_convert(old)


def give_old_messages() -> Callable[[], object]:
    batch = memoryview(build_batch([(NOW_MS, None, b"")] * 400_000, codec=Codec.GZIP))
    header = read_header(batch)
    return lambda: down_convert(batch, header, 1, from_offset=0, room=MIB)


@pytest.mark.parametrize("make", [unpack_snappy, take_old_messages, give_old_messages])
def test_others_run_meanwhile(make: Callable[[], Callable[[], object]]) -> None:
    work = make()
    began = time.perf_counter()
    work()
    whole = time.perf_counter() - began
    stops = sorted(longest_stop(work) for _ in range(TRIES))
    told = [round(each * 1000) for each in stops]
    print(f"{make.__name__}: longest stop {told} ms of {whole * 1000:.0f}")
    assert stops[0] < whole * LONGEST_PART


def test_messages_of_a_packed_batch_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = memoryview(build_batch([(NOW_MS, None, b"")] * 1000, codec=Codec.GZIP))
    header = read_header(batch)
    limit = 20_000  # 34,000 bytes as messages, 9,000 as records
    assert down_convert(batch, header, 1, from_offset=0, room=1, limit_bytes=limit).is_whole
    monkeypatch.setattr(convert, "SURE_BYTES", limit)
    with pytest.raises(InflateLimit):
        down_convert(batch, header, 1, from_offset=0, room=1, limit_bytes=limit)
