"""`horolog-acls.json`: the entries of access control, at the top of the data directory.

Written as a whole and atomically before a change is answered:

    {"format": 1, "acls": [{"resource": "TOPIC", "pattern": "LITERAL", "name": "orders",
     "principal": "User:a", "host": "*", "operation": "READ", "permission": "ALLOW"}],
     "checksum": "0c4e7f21"}
"""

import json
from typing import Any

from broker.security.acl import Acl
from broker.security.acl_book import AclBook
from config.sealed_json import check_seal, sealed
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType
from storage.errors import CorruptCheckpoint, NewerFormat

FILE_NAME = "horolog-acls.json"
FORMAT = 1


def render(book: AclBook) -> bytes:
    """The file's bytes."""
    document = sealed({"format": FORMAT, "acls": [_row(acl) for acl in book.acls]})
    return (json.dumps(document, indent=1) + "\n").encode()


def parse(path: str, text: str) -> AclBook:
    """Reads what `render` wrote.

    Raises CorruptCheckpoint or NewerFormat: an entry that denies must not silently be gone.
    """
    try:
        document: Any = json.loads(text)
        number = document["format"]
        if number == FORMAT:
            check_seal(document)
        acls = list(map(_acl, document["acls"])) if number == FORMAT else []
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptCheckpoint(path, f"ACLs cannot be read: {error}") from error
    if number != FORMAT:
        raise NewerFormat(path, f"has format {number}, this version reads {FORMAT}")
    return AclBook(acls)


def _row(acl: Acl) -> dict[str, str]:
    return {
        "resource": acl.resource_type.name,
        "pattern": acl.pattern_type.name,
        "name": acl.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }


def _acl(row: Any) -> Acl:
    texts = [row[key] for key in ("name", "principal", "host")]
    if not all(isinstance(each, str) for each in texts):
        raise TypeError(f"an entry with a part that is no text: {row!r:.200}")
    name, principal, host = texts
    return Acl(
        ResourceType[row["resource"]],
        PatternType[row["pattern"]],
        name,
        principal,
        host,
        AclOperation[row["operation"]],
        AclPermission[row["permission"]],
    )
