"""/api/openapi.json: the API's description, made from the same table that serves it."""

import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

from broker.http.port.parameters import Asked, Parameter
from broker.http.port.route import HttpRoute

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices

_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}
_ANSWERS = {
    "200": {
        "description": "The answer",
        "content": {"application/json": {"schema": {"type": "object"}}},
    },
    "default": {
        "description": "What was wrong, where, and what to do",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    },
}


def describe(routes: Sequence[HttpRoute]) -> dict[str, object]:
    """An OpenAPI 3.1 document of these routes."""
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Horolog admin API", "version": version("horolog")},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: HttpRoute) -> dict[str, object]:
    parameters = [_part_of_path(name) for name in re.findall(r"{(\w+)}", route.path)]
    parameters += [_parameter(each) for each in route.parameters]
    if route.takes_settings:
        parameters.append(
            {
                "name": "settings",
                "in": "query",
                "description": "Any setting of a topic by its own name, such as retention.ms=1h",
                "style": "form",
                "explode": True,
                "schema": {"type": "object", "additionalProperties": {"type": "string"}},
            }
        )
    operation: dict[str, object] = {
        "operationId": _name_of(route),
        "summary": route.summary,
        "parameters": parameters,
        "responses": _ANSWERS,
    }
    if route.method != "GET":
        operation["security"] = [{"token": []}]
    return operation


def _name_of(route: HttpRoute) -> str:
    words = re.findall(r"\w+", route.path.removeprefix("/api"))
    return "_".join([route.method.lower(), *words])


def _part_of_path(name: str) -> dict[str, object]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _parameter(parameter: Parameter) -> dict[str, object]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.doc,
        "schema": dict(parameter.kind.schema),
    }


def route(routes: Callable[[], Sequence[HttpRoute]]) -> HttpRoute:
    """The path of the description of `routes`, itself among them."""

    def document(_: "HttpServices", __: Asked) -> object:
        return describe(routes())

    return HttpRoute("GET", "/api/openapi.json", "This description.", read=document, is_early=True)
