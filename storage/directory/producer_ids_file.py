"""`horolog-producer-ids.json`: where the producer ids end that were given out.

At the top of the data directory, written as a whole and atomically before the first id of a block
goes out:

    {"format": 1, "reserved_below": 5000, "checksum": "5be1a9f3"}
"""

import json
from collections.abc import Iterable

from config.sealed_json import check_seal, sealed
from storage.errors import CorruptCheckpoint, NewerFormat

FILE_NAME = "horolog-producer-ids.json"
FORMAT = 1
FAR = 1 << 40
"""A Kafka that gave out a thousand ids a second for thirty years would not come as far."""
AHEAD = 1 << 30
"""So many ids a Kafka may have given out above those in its logs: to producers that have not
written yet, or whose records are gone. They go on with them when this broker takes its directory
over; and when a Kafka takes it back, it gives out what comes next after its own.
"""
FARTHEST = 1 << 62
"""No counter that is right comes here; ids above it would soon be more than 2^63 - 1."""


def parse(path: str, text: str | None) -> int | None:
    """Reads what was written: the first id that no block has; None where there is no file.

    Raises CorruptCheckpoint or NewerFormat.
    """
    if text is None:
        return None
    try:
        document = json.loads(text)
        known, end = document["format"] == FORMAT, document["reserved_below"]
        if known:
            check_seal(document)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptCheckpoint(path, f"producer ids cannot be read: {error}") from error
    if not known:
        raise NewerFormat(path, f"has format {document['format']}, this version reads {FORMAT}")
    if type(end) is not int or end < 0:
        raise CorruptCheckpoint(path, f"producer ids cannot be read: {end!r:.40} is none")
    return end


def render(end: int) -> bytes:
    """The content of the file. `end`: the first id that no block has."""
    text = json.dumps(sealed({"format": FORMAT, "reserved_below": end})) + "\n"
    return text.encode()


def first_unused(stored: int | None, known: Iterable[int]) -> int:
    """The id from which on none was given out, by the file and by ids that are known.

    A client may have made up one that no broker has given out: such from `FAR` on move nothing.
    Without a file a Kafka gave out those that are known, and up to `AHEAD` more.
    """
    above = max((each for each in known if 0 <= each < FAR), default=-1) + 1
    if stored is None:
        return above + AHEAD if above else 0
    return FAR if stored > FARTHEST else max(stored, above)
