"""Names of the objects of a tier. Pure text.

    horolog.json                                         the tier's own card
    topics/<topic>/<topic id>/<partition>/
        <base offset, 20 digits>-<16 hex digits>.log     a segment's records
        <base offset, 20 digits>-<16 hex digits>.side    its other files, one after the other
        manifest/<number, 20 digits>.json                what counts of the partition
    cluster/<number, 20 digits>.json                     topics, settings, entries of access control

Each name is used once: what is written again gets other hex digits, or the next number.
"""

from typing import NamedTuple
from uuid import UUID

CARD = "horolog.json"
TOPICS = "topics/"
CLUSTER = "cluster/"
RECORDS, SIDE = ".log", ".side"

_DIGITS = 20
_UNIQUE_DIGITS = 16
_JSON = ".json"


def unique_text(number: int) -> str:
    """16 hex digits for a random number of 64 bits."""
    return f"{number:0{_UNIQUE_DIGITS}x}"


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
