"""All that a side is asked of a topic, and its answers, without what two brokers may differ in."""

import zlib
from typing import Any, NamedTuple

from protocol.errors import ErrorCode
from protocol.records.batch import HEADER_BYTES, iter_headers
from tests.support.tier_sides.side import LAST_VERSION, Lived, Side

Told = dict[tuple[Any, ...], Any]
SPECIAL = (-1, -2, -3, -4, -5, -6, -7)
LARGE = 1 << 20
LIMITS = (1, 700, LARGE)
HOUR_MS = 3_600_000
TRIES = 3


def ask(side: Side, lived: Lived) -> Told:
    """Every answer about the topic, by its name, the kind of question and what was asked."""
    found = {**_by_time(side, lived), **_fetches(side, lived)}
    return {(lived.scene.topic, *key): answer for key, answer in found.items()}


def _by_time(side: Side, lived: Lived) -> Told:
    topic, found = lived.scene.topic, {}
    for isolation in (0, 1):
        asked = [(at, version) for at in SPECIAL for version in (1, 8, LAST_VERSION)]
        asked += [(at, LAST_VERSION) for at in times_of(lived)]
        for at, version in asked:
            answer = _asked_again(side, topic, at, version, isolation)
            found["offset", at, version, isolation] = _offset(answer, lived)
    return found


def _asked_again(side: Side, topic: str, at: int, version: int, isolation: int) -> Any:
    """The answer; asked for again, as clients do, where the tier took too long."""
    for _ in range(TRIES):
        answer = side.talk.list_offsets({topic: at}, version, isolation)[topic]
        if answer.error_code != ErrorCode.REQUEST_TIMED_OUT:
            break
    return answer


def _offset(answer: Any, lived: Lived) -> tuple[int, ...]:
    at = answer.timestamp
    if lived.now_ms <= at <= lived.now_ms + HOUR_MS:
        at = lived.now_ms  # it was stamped by the broker
    return answer.error_code, at, answer.offset, answer.leader_epoch


def _fetches(side: Side, lived: Lived) -> Told:
    found = {}
    for isolation in (0, 1):
        for offset in (*range(lived.end + 2), 10**7):
            limit = LIMITS[(offset + isolation) % len(LIMITS)]
            asked = [(lived.scene.topic, offset, limit)]
            (answer,) = side.talk.read(asked, isolation=isolation)
            found["fetch", offset, limit, isolation] = read(answer)
    return found


class Read(NamedTuple):
    """Answer of a fetch for one partition."""

    error: int
    high_watermark: int
    last_stable: int
    log_start: int
    aborted: list[int] | None
    """First offsets of the aborted transactions, in order; None where there is no list."""
    batches: list[tuple[int, ...]]
    cut_bytes: int
    """Of a batch that is not whole, at the end."""


def read(answer: Any) -> Read:
    """The answer without producer ids and times of markers."""
    data = memoryview(answer.records or b"")
    placed = list(iter_headers(data))
    whole = [(at, each) for at, each in placed if at + each.size_bytes <= len(data)]
    rows: list[tuple[int, ...]] = []
    for at, each in whole:
        body = b"" if each.is_control else data[at + HEADER_BYTES : at + each.size_bytes]
        rows.append((each.base_offset, each.record_count, each.attributes, zlib.crc32(body)))
    aborted = answer.aborted_transactions
    return Read(
        answer.error_code,
        answer.high_watermark,
        answer.last_stable_offset,
        answer.log_start_offset,
        None if aborted is None else sorted(each.first_offset for each in aborted),
        rows,
        len(data) - sum(each.size_bytes for _, each in whole),
    )


def times_of(lived: Lived) -> list[int]:
    """Each time of the topic, just before it and just after, and two far off."""
    times = {row.time_ms for row in lived.rows} - {lived.now_ms}
    near = {at + delta for at in times for delta in (-1, 0, 1)} | {0, 1, 2**62, 2**63 - 1}
    return sorted(at for at in near if at >= 0)
