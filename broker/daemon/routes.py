"""What is served: an API's schema joined with the handler of the same name.

`broker/handlers` is scanned; a schema without a handler has no route, and what has no route is not
listed by ApiVersions. A handler without a schema is a mistake of ours and fails the start.
"""

import importlib
import pkgutil

from broker import handlers
from broker.server.route import Route
from protocol.api import Api
from protocol.registry import apis


def routes() -> dict[int, Route]:
    """All routes by API key, in the order of the keys."""
    by_module = {api.module: api for api in apis().values()}
    found = [_route(by_module, name) for name in handler_names()]
    return {route.api.key: route for route in sorted(found, key=lambda route: route.api.key)}


def handler_names() -> list[str]:
    """The modules in broker/handlers."""
    return [module.name for module in pkgutil.iter_modules(handlers.__path__)]


def _route(by_module: dict[str, Api], name: str) -> Route:
    api = by_module.get(name)
    if api is None:
        raise LookupError(f"broker/handlers/{name}.py handles an API that protocol/apis lacks")
    module = importlib.import_module(f"{handlers.__name__}.{name}")
    return Route(api, module.handle)
