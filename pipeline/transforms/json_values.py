"""Values as JSON of a given schema: the ones that fit as a struct, the others as dead letters.

A value that is null fits as null. A field that is missing is null, one that the schema does not
name is dropped; one of another type makes the value a dead letter. Every value is judged by itself,
and by Python's own reader: Arrow's crashes on bytes that are no JSON. Pure.
"""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from pipeline.errors import BadOption

MAX_ERROR = 200
_INT, _LONG = range(-(2**31), 2**31), range(-(2**63), 2**63)


class Parsed(NamedTuple):
    """Values and what became of each."""

    data: pa.Array
    """A struct each; null for dead letters too."""
    errors: list[str | None]
    """Of dead letters, what is wrong."""

    @property
    def is_clean(self) -> bool:
        """True when every value fits."""
        return not any(self.errors)


def read_schema(text: str) -> pa.Schema:
    """The schema of `{"field": "type", ...}`; types may be such objects again. BadOption."""
    try:
        return pa.schema(_fields(json.loads(text)))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise BadOption(
            f"the schema of values cannot be read ({error}): it is a JSON object of names and "
            f"types, which are {', '.join(_TYPES)}, an object, or a list of one of these"
        ) from error


def parse(values: pa.Array, schema: pa.Schema) -> Parsed:
    """Each value as a struct of the schema."""
    kind = pa.struct(list(schema))
    rows: list[Any] = []
    errors: list[str | None] = []
    for value in values.to_pylist():
        row, error = None, None
        if value is not None:
            try:
                row = _fitted(json.loads(value, parse_constant=_refuse), kind, "the value")
            except (ValueError, RecursionError) as wrong:
                error = str(wrong)[:MAX_ERROR] or "it is no JSON"
            else:
                if row is None:
                    error = "the value is null"
        rows.append(row)
        errors.append(error)
    return Parsed(pa.array(rows, kind), errors)


def _fitted(value: Any, kind: pa.DataType, where: str) -> Any:
    """The value as the type has it; ValueError says where it does not fit."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            raise _misfit(where, "an object", value)
        return {each.name: _fitted(value.get(each.name), each.type, each.name) for each in kind}
    if pa.types.is_list(kind):
        if not isinstance(value, list):
            raise _misfit(where, "a list", value)
        return [_fitted(each, kind.value_type, where) for each in value]
    name = _NAMES[kind]
    fitted = _FIT[name](value)
    if fitted is None:
        raise _misfit(where, name, value)
    return fitted


def _misfit(where: str, wanted: str, value: Any) -> ValueError:
    return ValueError(f"{where}: {wanted} is wanted, not {type(value).__name__} {value!r:.40}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _boolean(value: Any) -> Any:
    return value if isinstance(value, bool) else None


def _int(value: Any) -> Any:
    return value if type(value) is int and value in _INT else None


def _long(value: Any) -> Any:
    return value if type(value) is int and value in _LONG else None


def _double(value: Any) -> Any:
    try:
        return float(value) if type(value) in {int, float} else None
    except OverflowError:
        return None


def _string(value: Any) -> Any:
    if isinstance(value, str):
        value.encode()  # half of a pair is no text: ValueError
        return value
    return None


def _timestamp(value: Any) -> Any:
    if not isinstance(value, str):
        return None
    found = datetime.fromisoformat(value)
    try:
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError:
        return None


def _date(value: Any) -> Any:
    return date.fromisoformat(value) if isinstance(value, str) else None


_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
}
_NAMES = {kind: name for name, kind in _TYPES.items()}
_FIT: dict[str, Callable[[Any], Any]] = {
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "double": _double,
    "string": _string,
    "timestamp": _timestamp,
    "date": _date,
}


def _fields(content: Any) -> list[pa.Field]:
    if not isinstance(content, dict) or not content:
        raise TypeError("an object with fields is wanted")
    return [pa.field(name, _type(each)) for name, each in content.items()]


def _type(content: Any) -> pa.DataType:
    if isinstance(content, dict):
        return pa.struct(_fields(content))
    if isinstance(content, list) and len(content) == 1:
        return pa.list_(_type(content[0]))
    if content not in _TYPES:
        raise ValueError(f"there is no type {content!r}")
    return _TYPES[content]
