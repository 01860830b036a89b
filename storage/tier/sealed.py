"""JSON objects of the tier: with their format, and a CRC-32C of all else in them.

The checksum is a number over the document's own text without blanks, keys in their order.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from protocol.checksum import crc32c
from storage.errors import CorruptCheckpoint, NewerFormat

_SUM = "checksum"


def sealed(document: Mapping[str, Any]) -> bytes:
    """The object's bytes. The document has its `format`."""
    return _with_sum(text_of(document))


def sealed_list(document: Mapping[str, Any], name: str, texts: Iterable[bytes]) -> bytes:
    """The bytes of a document that ends with a list of this name, of which the texts are known.

    They are what `sealed` makes of all of it. The document has its `format`.
    """
    items = b",".join(texts)
    return _with_sum(b'%s,"%s":[%s]}' % (text_of(document)[:-1], name.encode(), items))


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
    if crc32c(text_of(document)) != found:
        raise CorruptCheckpoint(path, "its checksum is not that of its content")
    return dict(document)


def text_of(document: Mapping[str, Any]) -> bytes:
    """Its text without blanks, keys in their order."""
    return json.dumps(document, separators=(",", ":")).encode()


def _with_sum(text: bytes) -> bytes:
    return b'%s,"%s":%d}' % (text[:-1], _SUM.encode(), crc32c(text))
