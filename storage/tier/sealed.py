"""JSON objects of the tier: with their format, and a CRC-32C of all else in them.

The checksum is a number over the document's own text without blanks, keys in their order.
"""

import json
from collections.abc import Mapping
from typing import Any

from protocol.checksum import crc32c
from storage.errors import CorruptCheckpoint, NewerFormat

_SUM = "checksum"


def sealed(document: Mapping[str, Any]) -> bytes:
    """The object's bytes. The document has its `format`."""
    return _text({**document, _SUM: crc32c(_text(document))})


def opened(path: str, data: bytes, known_format: int, what: str) -> dict[str, Any]:
    """The document as it was sealed; `what` it is, for errors. CorruptCheckpoint, NewerFormat."""
    try:
        document = json.loads(data)
        found = document.pop(_SUM)
        number = document["format"]
        if number > known_format:
            raise NewerFormat(path, f"format {number} is newer than {known_format}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptCheckpoint(path, f"no {what}: {error!r}") from error
    if crc32c(_text(document)) != found:
        raise CorruptCheckpoint(path, "its checksum is not that of its content")
    return dict(document)


def _text(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
