"""Every API there is a schema for, found by scanning protocol/apis; nothing is listed twice.

Adding an API is adding a file. What is advertised, routed, fuzzed and documented is read from here.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from protocol import apis as package
from protocol.api import Api


@functools.cache
def apis() -> Mapping[int, Api]:
    """Return the APIs by key, in the order of keys. No codec is made.

    Raises ValueError for a file without an API, with the name of another, or with a key that
    another file has.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    found = [(name, importlib.import_module(f"{package.__name__}.{name}")) for name in names]
    return collect((name, getattr(module, "API", None)) for name, module in found)


def collect(found: Iterable[tuple[str, Api | None]]) -> Mapping[int, Api]:
    """Check (file name, API) pairs against each other and order them by key. Raises ValueError."""
    rows: dict[int, Api] = {}
    for name, api in found:
        if api is None:
            raise ValueError(f"protocol/apis/{name}.py declares no API")
        if api.module != name:
            raise ValueError(f"{api.name} belongs into protocol/apis/{api.module}.py, not {name}")
        if (other := rows.get(api.key)) is not None:
            raise ValueError(f"{api.name} and {other.name} have both key {api.key}")
        rows[api.key] = api
    return MappingProxyType(dict(sorted(rows.items())))


def api_of(request: type[Any]) -> Api:
    """Return the API whose request that is. Modules of other APIs are not loaded.

    Raises ValueError for what is no request.
    """
    api = getattr(sys.modules[request.__module__], "API", None)
    if api is None or api.request is not request:
        raise ValueError(f"{request.__name__} is no request of an API")
    found: Api = api
    return found


@functools.cache
def by_name() -> Mapping[str, Api]:
    """Return the APIs by name ("ListOffsets")."""
    return MappingProxyType({api.name: api for api in apis().values()})
