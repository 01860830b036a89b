"""Values as JSON of a given schema: the ones that fit as a struct, the others as dead letters.

A value that is null fits as null. A field that is missing is null, one that the schema does not
name is dropped; one of another type makes the value a dead letter. Pure.
"""

import io
import json
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.json as arrow_json

from pipeline.errors import BadOption

MAX_ERROR = 200
_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
}


class Parsed(NamedTuple):
    """Values and what became of each."""

    data: pa.Array
    """A struct each; null for dead letters too."""
    errors: list[str | None]
    """Of dead letters, what is wrong."""

    @property
    def is_clean(self) -> bool:
        """Whether every value fits."""
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
    fast = _all_at_once(values, schema)
    if fast is not None:
        return Parsed(fast, [None] * len(values))
    rows: list[Any] = []
    errors: list[str | None] = []
    kind = pa.struct(list(schema))
    for value in values.to_pylist():
        row, error = _one(value, kind)
        rows.append(row)
        errors.append(error)
    return Parsed(pa.array(rows, kind), errors)


def _all_at_once(values: pa.Array, schema: pa.Schema) -> pa.Array | None:
    """All values, if each is one line and fits; else they are looked at one by one."""
    raw = values.to_pylist()
    if not raw or None in raw or any(b"\n" in each or not each.strip() for each in raw):
        return None
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        table = arrow_json.read_json(io.BytesIO(b"\n".join(raw)), parse_options=options)
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(raw):
        return None
    columns = [table.column(name).combine_chunks() for name in schema.names]
    return pa.StructArray.from_arrays(
        [c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns], fields=list(schema)
    )


def _one(value: bytes | None, kind: pa.StructType) -> tuple[Any, str | None]:
    if value is None:
        return None, None
    try:
        document = json.loads(value)
        if not isinstance(document, dict):
            return None, f"a JSON {type(document).__name__} is no object"
        kept = {name: document.get(name) for name in (field.name for field in kind)}
        return pa.array([kept], kind)[0].as_py(), None
    except (ValueError, TypeError, pa.ArrowException, RecursionError, OverflowError) as error:
        return None, str(error)[:MAX_ERROR]


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
