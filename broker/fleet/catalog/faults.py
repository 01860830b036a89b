"""Errors of the library and of PostgreSQL, as those of the port."""

from collections.abc import Iterator
from contextlib import contextmanager

from broker.fleet.catalog.port import (
    CatalogAway,
    CatalogError,
    CatalogReadOnly,
    CatalogRefused,
    CatalogTimedOut,
)


@contextmanager
def named_errors() -> Iterator[None]:
    """Errors of statements and connections come out as `CatalogError`; others as they are."""
    try:
        yield
    except CatalogError:
        raise
    except Exception as error:
        named = kind_of(error)
        if named is None:
            raise
        raise named(f"{type(error).__name__}: {error}") from error


def kind_of(error: BaseException) -> type[CatalogError] | None:
    """The port's error for one of the library; None for a mistake of our own."""
    import asyncpg

    away = (
        asyncpg.PostgresConnectionError,
        asyncpg.OperatorInterventionError,
        asyncpg.TooManyConnectionsError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        OSError,
    )
    refused = (
        asyncpg.InsufficientPrivilegeError,
        asyncpg.InvalidAuthorizationSpecificationError,
        asyncpg.InvalidCatalogNameError,
        asyncpg.UndefinedTableError,
        asyncpg.UndefinedFunctionError,
        asyncpg.UndefinedColumnError,
    )
    read_only = (
        asyncpg.ReadOnlySQLTransactionError,
        asyncpg.DiskFullError,
        asyncpg.TargetServerAttributeNotMatched,
    )
    kinds = (
        (refused, CatalogRefused),
        (read_only, CatalogReadOnly),
        (asyncpg.LockNotAvailableError, CatalogTimedOut),
        (away, CatalogAway),
    )
    for errors, kind in kinds:
        if isinstance(error, errors):
            return kind
    return CatalogError if isinstance(error, asyncpg.PostgresError) else None
