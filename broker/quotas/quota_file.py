"""`horolog-quotas.json`: limits of users, clients and addresses, atop the data directory.

Written as a whole and atomically before a change is answered. A part without a name is the default:

    {"format": 1, "quotas": [{"entity": {"user": null}, "limits": {"producer_byte_rate": 1024.0}}],
     "checksum": "0c4e7f21"}
"""

import json
from typing import Any

from broker.quotas.table import (
    CONTROLLER_MUTATION_RATE,
    IP,
    Entity,
    Limits,
    QuotaTable,
    alter,
    entity_of,
)
from config.sealed_json import check_seal, sealed
from protocol.errors import KafkaError
from storage.errors import CorruptCheckpoint, NewerFormat

FILE_NAME = "horolog-quotas.json"
FORMAT = 1
FORMAT_OF_ALL_KINDS = 2
"""With addresses or limits of changes, which earlier releases do not know."""


def render(table: QuotaTable) -> bytes:
    """The file's bytes."""
    rows = [
        {"entity": dict(entity), "limits": dict(limits)} for entity, limits in table.entries.items()
    ]
    newer = any(_is_newer(entity, limits) for entity, limits in table.entries.items())
    number = FORMAT_OF_ALL_KINDS if newer else FORMAT
    return (json.dumps(sealed({"format": number, "quotas": rows}), indent=1) + "\n").encode()


def parse(path: str, text: str) -> QuotaTable:
    """Reads what `render` wrote.

    Raises CorruptCheckpoint or NewerFormat: limits that were set must not silently be gone.
    """
    try:
        document: Any = json.loads(text)
        number = document["format"]
        is_known = number in (FORMAT, FORMAT_OF_ALL_KINDS)
        if is_known:
            check_seal(document)
        rows = dict(map(_row, document["quotas"])) if is_known else {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, KafkaError) as error:
        raise CorruptCheckpoint(path, f"quotas cannot be read: {error}") from error
    if not is_known:
        raise NewerFormat(path, f"has format {number}, this version reads {FORMAT_OF_ALL_KINDS}")
    return QuotaTable(rows)


def _is_newer(entity: Entity, limits: Limits) -> bool:
    return CONTROLLER_MUTATION_RATE in limits or any(kind == IP for kind, _ in entity)


def _row(row: Any) -> tuple[Entity, Limits]:
    draft: dict[Entity, Limits] = {}
    entity = entity_of(row["entity"].items())
    alter(draft, entity, row["limits"])
    return entity, draft[entity]
