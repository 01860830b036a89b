"""Requests of S3's protocol by what they do to which of the tier's objects: "put_new manifest"."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from storage.tier.names import CARD, CLUSTER, RECORDS, SIDE, is_probe

_FIRST_KEY = re.compile(rb"<Key>([^<]*)</Key>")


class Call(NamedTuple):
    """One request."""

    step: str
    """Operation, and kind of object."""
    nth: int
    """The first of its step is 1."""


def step_of(method: str, target: str, headers: Mapping[str, str], body: bytes) -> str:
    """Operation of a request, and kind of its object. `headers`: names in lower case."""
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    operation = _operation(method, query, headers)
    key = unquote(parts.path)
    if operation == "list":
        key = query.get("prefix", [""])[0]
    elif operation == "delete" and (first := _FIRST_KEY.search(body)):
        key = first[1].decode()
    return f"{operation} {_object(key)}"


def _operation(method: str, query: Mapping[str, list[str]], headers: Mapping[str, str]) -> str:
    match method:
        case "PUT" if "partNumber" in query:
            return "put_part"
        case "PUT":
            return "put_new" if "if-none-match" in headers else "put_file"
        case "POST" if "uploads" in query:
            return "begin_upload"
        case "POST" if "uploadId" in query:
            return "end_upload"
        case "POST" | "DELETE":
            return "abort_upload" if "uploadId" in query else "delete"
        case "GET" if "list-type" in query:
            return "list"
        case "GET":
            return "get_range" if "range" in headers else "get"
    return method.lower()


def _object(key: str) -> str:
    """Kind of an object, or of those that a list is of."""
    name = key.rpartition("/")[2]
    if is_probe(name):
        return "probe"
    if name == CARD:
        return "card"
    if "/manifest/" in key:
        return "manifest"
    if f"/{CLUSTER}" in key:
        return "picture"
    for suffix, kind in ((RECORDS, "records"), (SIDE, "side")):
        if name.endswith(suffix):
            return kind
    return "all"
