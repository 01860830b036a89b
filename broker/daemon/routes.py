"""Routes: an API's schema joined with the handler of the same name.

`broker/handlers` is scanned; a schema without a handler has no route, and what has no route is not
listed by ApiVersions. A handler without a schema is a mistake of ours and fails the start.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import NamedTuple

from broker import handlers
from broker.security.matrix import marks_of
from broker.server.route import Route
from broker.server.services import bound
from protocol.api import Api
from protocol.registry import apis


class Served(NamedTuple):
    """A served API, and the module that handles it."""

    api: Api
    handler: ModuleType


def served(serves: Callable[[str], bool] = lambda _: True) -> list[Served]:
    """All served APIs, in the order of their keys; `serves` says which, by their modules."""
    by_module = {api.module: api for api in apis().values()}
    found = [_served(by_module, name) for name in handler_names() if serves(name)]
    return sorted(found, key=lambda each: each.api.key)


def routes(of: Iterable[Served], services: object) -> dict[int, Route]:
    """Routes by API key; each handler gets those of `services` that it names.

    LookupError for an API without a row in the matrix of authorization.
    """
    return {
        api.key: Route(api, handler.handle, bound(handler.Services, services), marks_of(api.name))
        for api, handler in of
    }


def handler_names() -> list[str]:
    """The modules in broker/handlers."""
    return [module.name for module in pkgutil.iter_modules(handlers.__path__)]


def _served(by_module: dict[str, Api], name: str) -> Served:
    api = by_module.get(name)
    if api is None:
        raise LookupError(f"broker/handlers/{name}.py handles an API that protocol/apis lacks")
    return Served(api, importlib.import_module(f"{handlers.__name__}.{name}"))
