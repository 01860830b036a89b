"""Requests of S3's protocol by what they do to which of the tier's objects: "put_new manifest"."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from storage.tier.names import CARD, CLUSTER, RECORDS, SIDE, TOPICS, is_probe

_FIRST_KEY = re.compile(rb"<Key>([^<]*)</Key>")


class Call(NamedTuple):
    """One request."""

    step: str
    """Operation, and kind of object."""
    nth: int
    """The first of its step is 1."""


class Asked(NamedTuple):
    """A request as it has come."""

    call: Call
    topic: str
    """The topic of its object, or of those that it lists; empty for the cluster's own."""


class What(NamedTuple):
    """Operation of a request, and its object."""

    operation: str
    topic: str
    kind: str

    def step(self, apart: Mapping[str, str]) -> str:
        """Name of the step; requests of topics in `apart` have one more word."""
        word = apart.get(self.topic, "")
        return " ".join(filter(None, (self.operation, word, self.kind)))


def what_of(method: str, target: str, headers: Mapping[str, str], body: bytes) -> What:
    """Operation of a request, and its object. `headers`: names in lower case."""
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    operation = _operation(method, query, headers)
    key = unquote(parts.path)
    if operation == "list":
        key = query.get("prefix", [""])[0]
    elif operation == "delete" and (first := _FIRST_KEY.search(body)):
        key = first[1].decode()
    return What(operation, _topic(key), _object(key))


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


def _topic(key: str) -> str:
    """Of a key, or a beginning of one, with bucket and prefix before it."""
    return key.partition(f"/{TOPICS}")[2].partition("/")[0]


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
