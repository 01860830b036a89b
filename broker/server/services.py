"""Binding of handlers: each receives the services that it names, and nothing else."""

from typing import Any, NamedTuple


def bound(declared: type[NamedTuple], source: object) -> Any:
    """A value of `declared` whose fields are the attributes of `source` with the same names.

    Raises AttributeError, at the start, for a service that `source` lacks.
    """
    return declared(*(getattr(source, name) for name in declared._fields))
