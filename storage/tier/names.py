"""Names of the objects of a tier. Pure text.

    horolog.json                                         the tier's own card
    topics/<topic>/<topic id>/<partition>/
        <base offset, 20 digits>-<16 hex digits>.log     a segment's records
        <base offset, 20 digits>-<16 hex digits>.side    its other files, one after the other
        manifest/<number, 20 digits>.json                what counts of the partition
        epoch-<epoch, 10 digits>/<number, 20 digits>.json   likewise in a fleet, by its leader
    cluster/<number, 20 digits>.json                     topics, settings, entries of access control
    probe-<16 hex digits>                                tried out whether a name is made once only

Each name is used once: what is written again gets other hex digits, or the next number.
"""

import re
from functools import lru_cache
from typing import NamedTuple, Self
from uuid import UUID

CARD = "horolog.json"
TOPICS = "topics/"
CLUSTER = "cluster/"
RECORDS, SIDE = ".log", ".side"

_DIGITS = 20
_EPOCH_DIGITS = 10
_UNIQUE_DIGITS = 16
_JSON = ".json"
_PROBE = "probe-"
_OBJECT = re.compile(
    rf"{TOPICS}(?P<topic>[a-zA-Z0-9._-]+)/(?P<topic_id>[0-9a-f-]{{36}})/(?P<partition>0|[1-9]\d{{0,9}})/"
    rf"(?:(?P<base>\d{{{_DIGITS}}})-(?P<unique>[0-9a-f]{{{_UNIQUE_DIGITS}}})(?:{RECORDS}|{SIDE})"
    rf"|(?:manifest|epoch-(?P<epoch>\d{{{_EPOCH_DIGITS}}}))/\d{{{_DIGITS}}}{_JSON})",
    re.ASCII,
)
_PROBE_OBJECT = re.compile(rf"{_PROBE}[0-9a-f]{{{_UNIQUE_DIGITS}}}")


def unique_text(number: int) -> str:
    """16 hex digits for a random number of 64 bits."""
    return f"{number:0{_UNIQUE_DIGITS}x}"


def probe_name(number: int) -> str:
    """Name of an object that is made and removed to try out the store."""
    return f"{_PROBE}{unique_text(number)}"


def is_probe(key: str) -> bool:
    """True for names that `probe_name` gives."""
    return _PROBE_OBJECT.fullmatch(key) is not None


def numbered(prefix: str, number: int) -> str:
    """Name of a numbered object: a manifest, a picture of the cluster."""
    return f"{prefix}{number:0{_DIGITS}d}{_JSON}"


def number_of(key: str) -> int | None:
    """The number in a numbered object's name; None for any other name."""
    digits = key.rpartition("/")[2].removesuffix(_JSON)
    if not key.endswith(_JSON) or len(digits) != _DIGITS or not digits.isascii():
        return None
    return int(digits) if digits.isdigit() else None


class PartitionKeys(NamedTuple):
    """Names of one partition's objects."""

    topic: str
    topic_id: UUID
    partition: int

    @property
    def prefix(self) -> str:
        """The beginning of all of them."""
        return f"{TOPICS}{self.topic}/{self.topic_id}/{self.partition}/"

    @property
    def manifests(self) -> str:
        """The beginning of its manifests' names."""
        return f"{self.prefix}manifest/"

    def manifest(self, number: int) -> str:
        """Name of a manifest."""
        return numbered(self.manifests, number)

    def segment(self, base_offset: int, unique: str, suffix: str) -> str:
        """Name of an object of a segment: `RECORDS` or `SIDE`."""
        return f"{self.prefix}{base_offset:0{_DIGITS}d}-{unique}{suffix}"


class EpochKeys(PartitionKeys):
    """Names as the leader of one epoch uses them: its manifests are in a place of its own."""

    epoch: int

    def __new__(cls, keys: PartitionKeys, epoch: int) -> Self:
        """The same partition's."""
        made = super().__new__(cls, *keys)
        made.epoch = epoch
        return made

    @property
    def manifests(self) -> str:
        """The beginning of the names of this epoch's manifests."""
        return f"{self.prefix}epoch-{self.epoch:0{_EPOCH_DIGITS}d}/"


def epoch_of(keys: PartitionKeys) -> int:
    """The epoch of a leader's names; 0 for those of a broker that stands alone."""
    return keys.epoch if isinstance(keys, EpochKeys) else 0


class PartitionObject(NamedTuple):
    """An object of a partition, by its name."""

    keys: PartitionKeys
    base_offset: int = 0
    unique: str = ""
    """Of a segment; empty for a manifest."""
    epoch: int | None = None
    """Of a manifest in a fleet."""


def object_of(key: str) -> PartitionObject | None:
    """The object of a partition that has this name; None for all other names."""
    found = _OBJECT.fullmatch(key)
    keys = (
        None if found is None else _keys_of(found["topic"], found["topic_id"], found["partition"])
    )
    if found is None or keys is None:
        return None
    epoch = None if found["epoch"] is None else int(found["epoch"])
    return PartitionObject(keys, int(found["base"] or 0), found["unique"] or "", epoch)


def topic_of(key: str) -> str | None:
    """The topic of an object's name, or of a beginning of one; None for the cluster's own."""
    topic, slash, _ = key.removeprefix(TOPICS).partition("/")
    return topic if slash and key.startswith(TOPICS) else None


@lru_cache(maxsize=64)
def _keys_of(topic: str, topic_id: str, partition: str) -> PartitionKeys | None:
    try:
        keys = PartitionKeys(topic, UUID(topic_id), int(partition))
    except ValueError:
        return None
    return keys if str(keys.topic_id) == topic_id else None
