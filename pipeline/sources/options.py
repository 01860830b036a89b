"""The options of the source: Spark's Kafka connector's names and meanings, and some of our own.

Every option is checked before anything is read: an unknown one, or one that contradicts another, is
a `BadOption`, since one that is passed over in silence gives wrong answers. Options that begin with
`kafka.` and mean nothing to us are left alone, so that code moves over as it is; not so those of
security (`kafka.security.`, `kafka.sasl.`, `kafka.ssl.`), which are taken or refused.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from broker.access.errors import BadSetting
from broker.access.settings import IN_THE_CLEAR, ClientSecurity, client_security
from pipeline.directories.log_files import is_stored, shown
from pipeline.directories.tier_store import StorePlace, place_of
from pipeline.errors import BadOption

EARLIEST, LATEST = -2, -1
KAFKA = "kafka."
FILES, WIRE, AUTO = "files", "wire", "auto"
RECORDS_VIEW = "records"
VIEWS = (RECORDS_VIEW, "batches", "segments", "time_index", "offset_index", "partitions")
BY_RECORD, BY_OFFSET = "records", "offset"

Assigned = Mapping[str, Mapping[int, int]]
"""Numbers (offsets, or times in ms) by topic and partition."""

KNOWN = (
    "bootstrap", "log_dirs", "horolog.tier.url", "horolog.tier.allow.http",
    "mode", "offline", "view", "includeHeaders", "metadataColumns",
    "subscribe", "subscribePattern", "assign", "startingOffsets", "endingOffsets",
    "startingTimestamp", "endingTimestamp", "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "endingTimestampMode",
    "isolationLevel", "minPartitions", "maxOffsetsPerTrigger", "maxBytesPerTrigger",
    "failOnDataLoss", "pushFilters",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """Record times in ms, from `low` to before `high`, for all partitions or for single ones."""

    low: int | None = None
    high: int | None = None
    low_of: Assigned | None = None
    high_of: Assigned | None = None

    def bound(self, topic: str, partition: int) -> tuple[int | None, int | None]:
        """Low and high of one partition; None: open."""
        low = self.low if self.low_of is None else self.low_of.get(topic, {}).get(partition)
        high = self.high if self.high_of is None else self.high_of.get(topic, {}).get(partition)
        return low, high


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a read. Offsets: a number, or `EARLIEST` or `LATEST`."""

    log_dirs: tuple[str, ...] = ()
    bootstrap: str = ""
    tier: StorePlace | None = None
    """The store in which topics go on."""
    security: ClientSecurity = IN_THE_CLEAR
    mode: str = AUTO
    is_offline: bool = False
    view: str = RECORDS_VIEW
    has_headers: bool = False
    has_metadata: bool = False
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: Mapping[str, tuple[int, ...]] | None = None
    start: int | Assigned | None = None
    """None: what is usual, earliest for a batch and latest for a stream."""
    end: int | Assigned = LATEST
    times: TimeOptions = TimeOptions()
    fails_without_start: bool = True
    """By offset only: whether a partition without any record from the start time on is an error."""
    is_by_record: bool = True
    is_committed: bool = False
    min_tasks: int | None = None
    max_offsets: int | None = None
    max_bytes: int | None = None
    fails_on_loss: bool = True
    pushes_filters: bool = False

    def by_partition(self) -> Mapping[str, Assigned]:
        """Options of single partitions, by the option."""
        given: dict[str, object] = {
            "startingOffsets": self.start,
            "endingOffsets": self.end,
            "startingOffsetsByTimestamp": self.times.low_of,
            "endingOffsetsByTimestamp": self.times.high_of,
        }
        return {name: each for name, each in given.items() if isinstance(each, Mapping)}

    def takes(self, topic: str, partition: int | None = None) -> bool:
        """True when the topic, or the partition, was asked for."""
        if self.assigned is not None:
            wanted = self.assigned.get(topic)
            return wanted is not None and (partition is None or partition in wanted)
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics


def parse(options: Mapping[str, str]) -> ReadOptions:
    """The options as a user gives them; upper and lower case are the same. BadOption."""
    given = {name.lower(): value for name, value in options.items() if value is not None}
    if "kafka.bootstrap.servers" in given:
        given.setdefault("bootstrap", given["kafka.bootstrap.servers"])
    if "kafka.isolation.level" in given:
        given.setdefault("isolationlevel", given["kafka.isolation.level"])
    _refuse_unknown(given)
    made = ReadOptions(
        log_dirs=tuple(filter(None, map(str.strip, given.get("log_dirs", "").split(",")))),
        bootstrap=given.get("bootstrap", ""),
        tier=_tier(given),
        security=security_in(given),
        mode=_choice(given, "mode", (AUTO, FILES, WIRE)),
        is_offline=_flag(given, "offline"),
        view=_choice(given, "view", VIEWS),
        has_headers=_flag(given, "includeHeaders"),
        has_metadata=_flag(given, "metadataColumns"),
        topics=tuple(filter(None, map(str.strip, given.get("subscribe", "").split(",")))),
        pattern=_pattern(given),
        assigned=_assigned(given),
        start=_offsets(given, "startingOffsets"),
        end=_end(given),
        times=_times(given),
        fails_without_start=_choice(
            given, "startingOffsetsByTimestampStrategy", ("error", "latest")
        )
        == "error",
        is_by_record=_choice(given, "endingTimestampMode", (BY_RECORD, BY_OFFSET)) == BY_RECORD,
        is_committed=_choice(given, "isolationLevel", ("read_uncommitted", "read_committed"))
        == "read_committed",
        min_tasks=_count(given, "minPartitions"),
        max_offsets=_count(given, "maxOffsetsPerTrigger"),
        max_bytes=_count(given, "maxBytesPerTrigger"),
        fails_on_loss=_flag(given, "failOnDataLoss", otherwise=True),
        pushes_filters=_flag(given, "pushFilters"),
    )
    _refuse_contradictions(made, given)
    return made


def security_in(given: Mapping[str, str]) -> ClientSecurity:
    """The way to a broker, by the options `kafka.security.*`, `.sasl.*`, `.ssl.*`. BadOption.

    `given` has names in small letters.
    """
    settings = {
        name.removeprefix(KAFKA): each for name, each in given.items() if name.startswith(KAFKA)
    }
    try:
        return client_security(settings, lambda key: f"{KAFKA}{key}")
    except BadSetting as error:
        raise BadOption(str(error)) from None


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in KNOWN}
    for name in given:
        if name in known or name.startswith("kafka."):
            continue
        near = get_close_matches(name, known, 1)
        hint = f"; did you mean {known[near[0]]}?" if near else f"; options: {', '.join(KNOWN)}"
        raise BadOption(f"there is no option {name!r}{hint}")


def _refuse_contradictions(made: ReadOptions, given: Mapping[str, str]) -> None:
    chosen = [name for name in ("subscribe", "subscribePattern", "assign") if name.lower() in given]
    if len(chosen) != 1:
        names = " and ".join(chosen) or "none"
        raise BadOption(f"one of subscribe, subscribePattern and assign is needed, not {names}")
    if not made.log_dirs and not made.bootstrap and made.tier is None:
        raise BadOption(
            "log_dirs, kafka.bootstrap.servers or horolog.tier.url is needed: where the data is"
        )
    _refuse_stores(made)
    if made.mode == WIRE and not made.bootstrap:
        raise BadOption("mode=wire needs kafka.bootstrap.servers")
    if made.mode == WIRE and made.tier is not None:
        raise BadOption("mode=wire has the broker read its tier itself: leave out horolog.tier.url")
    if made.is_offline and made.bootstrap:
        raise BadOption(
            "offline says that no broker is at work, kafka.bootstrap.servers that one is"
        )
    for what in ("starting", "ending"):
        both = [name for name in KNOWN if name.startswith(what) and name.lower() in given]
        both = [name for name in both if not name.endswith(("Strategy", "Mode"))]
        if len(both) > 1:
            raise BadOption(f"{' and '.join(both)} say the same in two ways: give one of them")


def _refuse_stores(made: ReadOptions) -> None:
    """Copies in object stores are read alone, and named so that paths can be built behind."""
    for each in filter(is_stored, made.log_dirs):
        if made.bootstrap:
            raise BadOption(
                f"log_dirs={shown(each)} is a copy, which no broker knows: leave out "
                "kafka.bootstrap.servers"
            )
        if "/" in each.partition("?")[2]:
            raise BadOption(f"log_dirs={shown(each)}: write %2F for a slash behind the ?")


def _tier(given: Mapping[str, str]) -> StorePlace | None:
    allows_http = _flag(given, "horolog.tier.allow.http")
    url = given.get("horolog.tier.url")
    return None if url is None else place_of(url, allows_http=allows_http)


def _choice(given: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    """One of the values; the first one when nothing is said."""
    value = given.get(name.lower(), values[0]).lower()
    if value not in values:
        raise BadOption(f"{name}={value!r} is none of {', '.join(values)}")
    return value


def _flag(given: Mapping[str, str], name: str, *, otherwise: bool = False) -> bool:
    text = given.get(name.lower(), str(otherwise)).lower()
    if text not in {"true", "false"}:
        raise BadOption(f"{name}={text!r} is neither true nor false")
    return text == "true"


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.isdecimal() or not 0 < int(text) < 2**63:
        raise BadOption(f"{name}={text!r} is no number above 0")
    return int(text)


def _pattern(given: Mapping[str, str]) -> str | None:
    text = given.get("subscribepattern")
    if text is not None:
        try:
            re.compile(text)
        except re.error as error:
            raise BadOption(f"subscribePattern={text!r} is no pattern: {error}") from None
    return text


def _assigned(given: Mapping[str, str]) -> Mapping[str, tuple[int, ...]] | None:
    if "assign" not in given:
        return None
    found = _json(given, "assign")
    if not isinstance(found, dict) or not all(
        isinstance(each, list) and all(type(index) is int for index in each)
        for each in found.values()
    ):
        raise BadOption('assign is no JSON like {"topic": [0, 1]}')
    return {topic: tuple(indexes) for topic, indexes in found.items()}


def _offsets(given: Mapping[str, str], name: str) -> int | Assigned | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if text.lower() in {"earliest", "latest"}:
        return EARLIEST if text.lower() == "earliest" else LATEST
    return _by_partition(given, name, lambda offset: offset >= EARLIEST)


def _end(given: Mapping[str, str]) -> int | Assigned:
    found = _offsets(given, "endingOffsets")
    values = [found] if isinstance(found, int) else _flat(found)
    if EARLIEST in values:
        raise BadOption("endingOffsets cannot be earliest (-2)")
    return LATEST if found is None else found


def _flat(found: Assigned | None) -> list[int]:
    return [offset for each in (found or {}).values() for offset in each.values()]


def _times(given: Mapping[str, str]) -> TimeOptions:
    def one(name: str) -> int | None:
        text = given.get(name.lower())
        if text is not None and not (text.isdecimal() and int(text) < 2**63):
            raise BadOption(f"{name}={text!r} is no time in milliseconds since 1970")
        return None if text is None else int(text)

    def each(name: str) -> Assigned | None:
        if name.lower() not in given:
            return None
        return _by_partition(given, name, lambda time: time >= 0)

    return TimeOptions(
        one("startingTimestamp"),
        one("endingTimestamp"),
        each("startingOffsetsByTimestamp"),
        each("endingOffsetsByTimestamp"),
    )


def _by_partition(given: Mapping[str, str], name: str, is_good: Callable[[int], bool]) -> Assigned:
    found = _json(given, name)
    try:
        read = {
            str(topic): {int(index): _number(value) for index, value in each.items()}
            for topic, each in found.items()
        }
    except (AttributeError, TypeError, ValueError):
        read = {}
    if not read or not all(is_good(value) for value in _flat(read)):
        raise BadOption(f'{name} is no JSON like {{"topic": {{"0": 23, "1": -1}}}}')
    return read


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _json(given: Mapping[str, str], name: str) -> Any:
    try:
        return json.loads(given[name.lower()])
    except ValueError as error:
        raise BadOption(f"{name} is no JSON: {error}") from None
