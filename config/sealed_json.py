"""The checksum of the JSON files at the top of a data directory: a changed bit is no setting.

A sealed document has the key `checksum`: CRC-32C, as eight hexadecimal digits, over all other keys
in JSON with sorted keys and no blanks. One without the key is believed: older versions wrote none,
and people write such files by hand. Older versions ignore the key.
"""

import json
from typing import Any

from protocol.checksum import crc32c

KEY = "checksum"


class WrongChecksum(ValueError):  # noqa: N818 - the state it found
    """The document is not the one that was sealed. The text says what to do."""


def checksum_of(document: dict[str, Any]) -> str:
    """Of everything in it but its own checksum."""
    rest = {key: value for key, value in document.items() if key != KEY}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return f"{crc32c(text.encode()):08x}"


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """The same with its checksum, as the last key."""
    rest = {key: value for key, value in document.items() if key != KEY}
    return {**rest, KEY: checksum_of(rest)}


def check_seal(document: dict[str, Any]) -> None:
    """WrongChecksum unless the document has none, or the right one."""
    if KEY not in document:
        return
    actual = checksum_of(document)
    if document[KEY] != actual:
        raise WrongChecksum(
            f"its checksum is {document[KEY]!r:.40}, its content gives {actual!r}: the disk or an "
            f"editor has changed it. Bring it back from a backup; if the change is meant, take "
            f'"{KEY}" out of the file'
        )
