"""/api/openapi.json: the API's description, made from the same table that serves it."""

import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from broker.http.port.caller import Needs, Open
from broker.http.port.parameters import Asked, Parameter
from broker.http.port.route import HttpRoute, NoServices

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
_SCHEMES: dict[str, dict[str, str]] = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of horolog.http.token.file, with its role.",
    },
    "user": {
        "type": "http",
        "scheme": "basic",
        "description": "A user of the broker, with its ACLs; over https, or on the broker's "
        "machine, and only where there is an authorizer.",
    },
    "certificate": {
        "type": "mutualTLS",
        "description": "A user whom a client's certificate names, likewise.",
    },
}
_WAYS: list[dict[str, list[str]]] = [{name: []} for name in _SCHEMES]
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


def describe(routes: Sequence[HttpRoute[Any]]) -> dict[str, object]:
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
            "securitySchemes": _SCHEMES,
        },
    }


def _operation(route: HttpRoute[Any]) -> dict[str, object]:
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
        "description": _right_of(route.needs),
        "parameters": parameters,
        "responses": _ANSWERS,
    }
    operation["security"] = _WAYS if route.method != "GET" else [{}, *_WAYS]
    return operation


def _right_of(needs: Needs | Open) -> str:
    """In words, for users and for tokens."""
    if isinstance(needs, Open):
        return f"Needs no right: {needs.why}."
    kind, role = needs.kind.name.lower().replace("_", " "), needs.role.name.lower()
    return f"Needs the right {needs.operation.name} on the {kind}, or a token of the role {role}."


def _name_of(route: HttpRoute[Any]) -> str:
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


def route(routes: Callable[[], Sequence[HttpRoute[Any]]]) -> HttpRoute[NoServices]:
    """The path of the description of `routes`, itself among them."""

    def document(_: NoServices, __: Asked) -> object:
        return describe(routes())

    return HttpRoute(
        NoServices,
        "GET",
        "/api/openapi.json",
        "This description.",
        needs=Open("it is the same for every broker"),
        read=document,
        is_early=True,
    )
