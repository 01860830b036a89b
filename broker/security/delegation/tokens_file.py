"""`horolog-tokens.json`: delegation tokens, at the top of the data directory, for its owner only.

Written as a whole and atomically before a change is answered. It holds what a log-in is compared
with, and neither the secret nor an HMAC: its reader cannot log in. `made_by` is the mark of the
secret that made a token. Binary values are base64, times milliseconds since 1970:

    {"format": 1, "tokens": [
     {"id": "iDBAPp-lSGmy0Qj-7CxS1w", "owner": "alice", "requester": "alice", "renewers": ["bob"],
      "issued_ms": 1795456512221, "expires_ms": 1795456562221, "latest_ms": 1795456612221,
      "made_by": "...", "credentials": {"SCRAM-SHA-256": {"salt": "...", "iterations": 4096,
      "stored_key": "...", "server_key": "..."}}}], "checksum": "0c4e7f21"}
"""

import base64
import json
from collections.abc import Collection, Mapping
from typing import Any

from broker.security.credentials import BY_SASL_NAME, Credential, Mechanism
from broker.security.delegation.token import DelegationToken
from config.sealed_json import KEY, check_seal
from protocol.checksum import crc32c
from storage.errors import CorruptCheckpoint, NewerFormat

FILE_NAME = "horolog-tokens.json"
FORMAT = 1
_TIMES = ("issued_ms", "expires_ms", "latest_ms")


def row_text(token: DelegationToken) -> str:
    """A token as the file holds it: JSON in one line, in the form that the checksum is over."""
    return json.dumps(_written(token), sort_keys=True, separators=(",", ":"))


def render(rows: Collection[str]) -> bytes:
    """The file's bytes, of the tokens' texts.

    Sealed as `config.sealed_json` does it; the texts are joined instead of made again, since there
    may be ten thousand.
    """
    begins, ends = f'{{"format":{FORMAT},"tokens":[', "]"
    checksum = crc32c(f"{begins}{','.join(rows)}{ends}}}".encode())
    rows_in_lines = ",\n".join(rows)
    return f'{begins}\n{rows_in_lines}\n{ends},"{KEY}":"{checksum:08x}"}}\n'.encode()


def parse(path: str, text: str) -> list[DelegationToken]:
    """Reads what `render` wrote.

    Raises CorruptCheckpoint or NewerFormat: tokens that were given must not silently be gone.
    """
    try:
        document: Any = json.loads(text)
        number = document["format"]
        if number == FORMAT:
            check_seal(document)
            return _tokens(document["tokens"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptCheckpoint(path, f"delegation tokens cannot be read: {error}") from error
    raise NewerFormat(path, f"has format {number}, this version reads {FORMAT}")


def _tokens(rows: Any) -> list[DelegationToken]:
    found = [_token(each) for each in rows]
    if len({each.token_id for each in found}) < len(found):
        raise ValueError("a token is there twice")
    return found


def _token(row: Any) -> DelegationToken:
    names = [row["id"], row["owner"], row["requester"], *row["renewers"]]
    if not all(isinstance(each, str) for each in names) or not all(names[:3]):
        raise ValueError("a name is no text")
    issued_ms, expires_ms, latest_ms = (_time(row[each]) for each in _TIMES)
    credentials = {
        BY_SASL_NAME[name]: _credential(BY_SASL_NAME[name], each)
        for name, each in row["credentials"].items()
    }
    if len(credentials) < len(Mechanism):
        raise ValueError(f"{names[0]}: a credential is missing")
    token_id, owner, requester, *renewers = names
    return DelegationToken(
        token_id,
        owner,
        requester,
        tuple(renewers),
        issued_ms,
        expires_ms,
        latest_ms,
        _bytes(row["made_by"]),
        credentials,
    )


def _time(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r:.40} is no time")
    return value


def _credential(mechanism: Mechanism, row: Mapping[str, Any]) -> Credential:
    stored_key, server_key = _bytes(row["stored_key"]), _bytes(row["server_key"])
    if {len(stored_key), len(server_key)} != {mechanism.key_bytes}:
        raise ValueError("a key has the wrong length")
    iterations = row["iterations"]
    if not isinstance(iterations, int) or iterations < 1:
        raise ValueError(f"iterations are {iterations!r}")
    return Credential(_bytes(row["salt"]), iterations, stored_key, server_key)


def _written(token: DelegationToken) -> dict[str, object]:
    return {
        "id": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issued_ms": token.issued_ms,
        "expires_ms": token.expires_ms,
        "latest_ms": token.latest_ms,
        "made_by": _text(token.made_by),
        "credentials": {
            mechanism.sasl_name: {
                "salt": _text(each.salt),
                "iterations": each.iterations,
                "stored_key": _text(each.stored_key),
                "server_key": _text(each.server_key),
            }
            for mechanism, each in token.credentials.items()
        },
    }


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
