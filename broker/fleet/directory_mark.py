"""A mark in the data directory of a fleet's node: its logs are a part of what the rows have.

A directory of a broker that stood alone is never taken for one: what the rows do not have would be
removed from it. Nor is a fleet's served by a broker alone: its logs may lack what is committed.
"""

import json
from uuid import UUID

from config.errors import ConfigError
from config.fleet.rules import URL
from config.sealed_json import check_seal, sealed
from storage.env import FileSystem
from storage.files.layout import FLEET_FILE

FORMAT = 1


def check_mark(fs: FileSystem, directory: str, fleet_id: UUID | None, *, has_logs: bool) -> None:
    """Marks a directory without logs that is to be a fleet's. `fleet_id` None: of a broker alone.

    ConfigError for a directory of another kind, or of another fleet.
    """
    path = f"{directory}/{FLEET_FILE}"
    found = _read(fs, path) if fs.exists(path) else None
    if found == fleet_id:
        return
    if fleet_id is None:
        raise ConfigError(
            URL,
            f"{directory} is that of a node of the fleet {found}: set {URL} as it was, or give "
            "this broker a data directory of its own",
        )
    if found is not None:
        raise ConfigError(
            URL, f"{directory} is of the fleet {found}, and {URL} leads to {fleet_id}"
        )
    if has_logs:
        raise ConfigError(
            URL,
            f"{directory} has topics of a broker that stood alone, which the fleet does not know: "
            "give this node an empty data directory",
        )
    text = json.dumps(sealed({"format": FORMAT, "fleet_id": str(fleet_id)})) + "\n"
    fs.write_atomically(path, text.encode())


def _read(fs: FileSystem, path: str) -> UUID:
    try:
        document = json.loads(fs.read_text(path))
        check_seal(document)
        return UUID(document["fleet_id"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(URL, f"{path} cannot be read: {error}") from error
