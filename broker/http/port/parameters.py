"""Parameters of requests: names, kinds and bounds, checked before anything is looked at.

Parameters come in the query; those of a POST may come as a JSON object in the body, too.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from broker.http.port.caller import Caller
from broker.http.port.messages import ApiError, Request
from config.quantities import parse_duration, parse_instant

MAX_FIELDS = 100
Read = Callable[[str, int], object]


@dataclass(frozen=True, slots=True)
class ParameterKind:
    """Kind of a parameter: its parser (`read(text, now_ms)`, ValueError) and OpenAPI schema."""

    read: Read
    schema: Mapping[str, object] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. Without `required` a missing one has the default."""

    name: str
    kind: ParameterKind
    doc: str
    default: object = None
    required: bool = False


class Asked(NamedTuple):
    """A question, understood: parts of the path, parameters by name, and settings as text."""

    path: Mapping[str, str]
    fields: Mapping[str, Any]
    settings: Mapping[str, str]
    caller: Caller


INSTANT = ParameterKind(parse_instant)
DURATION = ParameterKind(lambda text, _: parse_duration(text))
SPEED = ParameterKind(lambda text, _: float(text), {"type": "number", "minimum": 0})

FLAG = ParameterKind(lambda text, _: _is_true(text), {"type": "boolean"})


def count(low: int, high: int) -> ParameterKind:
    """Reader of a whole number between the two, both allowed; it raises ValueError."""

    def read(text: str, _: int) -> int:
        number = int(text)
        if not low <= number <= high:
            raise ValueError(f"{number} is out of bounds: {low} to {high}")
        return number

    return ParameterKind(read, {"type": "integer", "minimum": low, "maximum": high})


def page_of(what: str, most: int) -> tuple[Parameter, Parameter]:
    """Parameters of a page of names: where it begins, and how many of `what` it has."""
    return (
        Parameter("after", ParameterKind(lambda text, _: text), "Begin behind this name", ""),
        Parameter("limit", count(1, most), f"{what} in the answer", most),
    )


def word(*words: str) -> ParameterKind:
    """Reader of one of a closed set; it raises ValueError."""

    def read(text: str, _: int) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is not one of {', '.join(words)}")
        return text

    return ParameterKind(read, {"type": "string", "enum": list(words)})


def _is_true(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


def given(request: Request) -> dict[str, str]:
    """The parameters of a request by name, as text; ApiError when unreadable or given twice."""
    pairs = [*_of_query(request.query), *_of_body(request.body)]
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name in found if sum(name == each for each, _ in pairs) > 1)
        raise ApiError(400, "bad_parameter", f"{twice} is given more than once")
    return found


def understood(
    texts: Mapping[str, str],
    parameters: tuple[Parameter, ...],
    now_ms: int,
    *,
    takes_settings: bool,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Parameters with their values, and what is left as settings; ApiError naming the wrong one."""
    known = {each.name: each for each in parameters}
    settings = {name: text for name, text in texts.items() if name not in known}
    if settings and not takes_settings:
        raise _unknown(next(iter(settings)), list(known))
    return {each.name: _value(each, texts, now_ms) for each in parameters}, settings


def _value(parameter: Parameter, texts: Mapping[str, str], now_ms: int) -> object:
    text = texts.get(parameter.name)
    if text is None:
        if parameter.required:
            raise ApiError(
                400, "bad_parameter", f"{parameter.name} is missing: {parameter.doc.lower()}"
            )
        return parameter.default
    try:
        return parameter.kind.read(text, now_ms)
    except ValueError as error:
        raise ApiError(400, "bad_parameter", f"{parameter.name}: {error}") from error


def _unknown(name: str, known: list[str]) -> ApiError:
    near = get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]}?" if near else f": {', '.join(known) or 'there are none'}"
    return ApiError(400, "bad_parameter", f"There is no parameter {name!r}{hint}")


def _of_query(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query,
            keep_blank_values=True,
            strict_parsing=bool(query),
            max_num_fields=MAX_FIELDS,
            errors="strict",
        )
    except ValueError as error:
        raise ApiError(400, "bad_parameter", f"The query cannot be read: {error}") from error


def _of_body(body: bytes) -> list[tuple[str, str]]:
    if not body.strip():
        return []
    try:
        pairs = json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "bad_body", f"The body is not JSON: {error}") from error
    if not isinstance(pairs, _Pairs) or len(pairs) > MAX_FIELDS:
        raise ApiError(400, "bad_body", "The body must be one JSON object with few members")
    return [(name, _text(name, value)) for name, value in pairs]


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, repeated ones too."""


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ApiError(400, "bad_parameter", f"{name} must be a text or a number")
