"""Entries and filters as requests carry them: their checks, with Kafka's codes and texts."""

from typing import Protocol, TypeVar

from broker.security.acl import ANY_HOST, Acl, address_of
from broker.security.acl_filter import AclFilter
from broker.security.authority import Authority
from protocol.acls import (
    CLUSTER_NAME,
    SUPPORTED,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from protocol.errors import ErrorCode, KafkaError

MAX_A_REQUEST = 1000
MAX_NAME = 1024
"""Characters of a name or a user: the longest of Kafka's resource names have 249."""

E = TypeVar("E", AclOperation, PatternType, AclPermission, ResourceType)


class Creation(Protocol):
    """An entry as CreateAcls carries it."""

    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class AskedFilter(Protocol):
    """A filter as DescribeAcls and DeleteAcls carry it."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def check_is_on(authority: Authority) -> None:
    """SECURITY_DISABLED (54) without an authorizer."""
    if not authority.is_on:
        raise KafkaError(
            ErrorCode.SECURITY_DISABLED, "No Authorizer is configured: see authorizer.class.name"
        )


def check_count(count: int, what: str) -> None:
    """INVALID_REQUEST (42) beyond what one request may change."""
    if count > MAX_A_REQUEST:
        raise _invalid(f"{count} {what} in one request: at most {MAX_A_REQUEST}")


def acl_of(creation: Creation) -> Acl:
    """The entry; INVALID_REQUEST (42) for one that could mean nothing."""
    acl = Acl(
        _number(ResourceType, creation.resource_type, "resource type"),
        _number(PatternType, creation.resource_pattern_type, "pattern type"),
        creation.resource_name,
        creation.principal,
        creation.host if creation.host == ANY_HOST else address_of(creation.host),
        _number(AclOperation, creation.operation, "operation"),
        _number(AclPermission, creation.permission_type, "permission type"),
    )
    _check_numbers(acl)
    _check_names(acl)
    return acl


def filter_of(asked: AskedFilter) -> AclFilter:
    """The filter; INVALID_REQUEST (42) for numbers that Kafka does not know."""
    host = asked.host_filter
    return AclFilter(
        _number(ResourceType, asked.resource_type_filter, "resource type"),
        _number(PatternType, asked.pattern_type_filter, "pattern type"),
        asked.resource_name_filter,
        asked.principal_filter,
        host if host is None or host == ANY_HOST else address_of(host),
        _number(AclOperation, asked.operation, "operation"),
        _number(AclPermission, asked.permission_type, "permission type"),
    )


def _check_numbers(acl: Acl) -> None:
    if acl.pattern_type not in {PatternType.LITERAL, PatternType.PREFIXED}:
        raise _invalid(f"Invalid pattern type {acl.pattern_type.name}")
    if acl.permission is AclPermission.ANY:
        raise _invalid("Invalid permission type ANY")
    supported = SUPPORTED.get(acl.resource_type)
    if supported is None:
        raise _invalid(f"Invalid resource type {acl.resource_type.name}")
    if acl.operation is AclOperation.ANY:
        raise _invalid("Invalid operation type ANY")


def _check_names(acl: Acl) -> None:
    if not acl.name:
        raise _invalid("Invalid empty resource name")
    if max(len(acl.name), len(acl.principal), len(acl.host)) > MAX_NAME:
        raise _invalid(f"A name has more than {MAX_NAME} characters")
    if acl.resource_type is ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        raise _invalid("The only valid name for the CLUSTER resource is kafka-cluster")
    kind, colon, name = acl.principal.partition(":")
    if not colon:
        raise _invalid(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    if not kind or not name or not acl.host:
        raise _invalid("A principal needs a type and a name, and an entry a host")


def _number(kind: type[E], value: int, what: str) -> E:
    try:
        found = kind(value)
    except ValueError:
        raise _invalid(f"There is no {what} {value}") from None
    if not found:
        raise _invalid(f"The {what} is UNKNOWN")
    return found


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
