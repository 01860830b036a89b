"""`horolog acls`: entries of access control, of a broker or of a directory that none uses."""

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, TypeVar

import click

from broker.cli.security.acl_source import AclSource, source_of
from broker.cli.security.place import CommandPlace, placed
from broker.cli.tables import TablePage
from broker.runtime.principals import USER
from broker.security.acl import ANY_HOST, ANY_NAME, Acl, address_of
from broker.security.acl_filter import AclFilter
from broker.security.acl_requests import acl_of
from protocol.acls import (
    CLUSTER_NAME,
    SUPPORTED,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from protocol.apis.create_acls import AclCreation
from protocol.errors import KafkaError

DENIED = 1
COLUMNS = ("resource", "pattern", "principal", "host", "permission", "operation")
E = TypeVar("E", AclOperation, ResourceType)


class NamedResource(NamedTuple):
    """A kind of resource and a name, as `topic:orders` writes them."""

    kind: ResourceType
    name: str


@click.group("acls", short_help="Show, add, remove and check ACLs.")
def command() -> None:
    """Show, add, remove and check the entries of access control.

    PRINCIPAL is User:NAME, or NAME alone; User:* is everybody. OPERATION is one or more of read,
    write, create, delete, alter, describe, cluster-action, describe-configs, alter-configs,
    idempotent-write, create-tokens, describe-tokens and all, with commas between. RESOURCE is
    topic:NAME, group:NAME, transactional-id:NAME, delegation-token:ID, user:NAME, or cluster; the
    name * is every name.

    \b
    horolog acls add alice read,describe topic:orders
    horolog acls add 'User:*' read topic:public- --prefixed --host 10.0.0.7
    horolog acls check alice 10.0.0.7 write topic:orders
    """


def _entry(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the entries that its arguments name."""

    @click.argument("principal")
    @click.argument("operation")
    @click.argument("resource")
    @click.option("--host", default=ANY_HOST, show_default=True, help="Address of the clients.")
    @click.option("--prefixed", is_flag=True, help="Every name that begins with the given one.")
    @click.option("--deny", is_flag=True, help="An entry that takes the right away.")
    @placed
    @wraps(command)
    def with_entries(
        *,
        place: CommandPlace,
        principal: str,
        operation: str,
        resource: str,
        host: str,
        prefixed: bool,
        deny: bool,
    ) -> int:
        kind, name = _resource(resource)
        creation = AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
            principal=_principal(principal),
            host=host,
            permission_type=AclPermission.DENY if deny else AclPermission.ALLOW,
        )
        acls = [_checked(creation, each) for each in _operations(operation, kind)]
        return command(source=source_of(place), acls=acls)

    return with_entries


@command.command("add", short_help="Add entries.")
@_entry
def add(source: AclSource, acls: list[Acl]) -> int:
    """Add entries: one for each operation. Those that are there already stay."""
    source.add(acls)
    for each in acls:
        click.echo(f"Added: {each}")
    return 0


@command.command("remove", short_help="Remove entries.")
@_entry
def remove(source: AclSource, acls: list[Acl]) -> int:
    """Remove entries, which are named as they were added."""
    gone = source.remove(acls)
    for each in acls:
        click.echo(f"{'Removed' if each in gone else 'Not there'}: {each}")
    return 0 if gone else DENIED


@command.command("list", short_help="Show the entries.")
@click.option("--principal", metavar="PRINCIPAL", help="Those that name this user.")
@click.option("--resource", metavar="RESOURCE", help="Those that are about this resource.")
@placed
def show(place: CommandPlace, principal: str | None, resource: str | None) -> int:
    """Show the entries, all of them or some."""
    found = None if resource is None else _resource(resource)
    chosen = AclFilter(
        ResourceType.ANY if found is None else found.kind,
        PatternType.ANY if found is None else PatternType.MATCH,
        None if found is None else found.name,
        None if principal is None else _principal(principal),
        None,
        AclOperation.ANY,
        AclPermission.ANY,
    )
    entries = source_of(place).matching(chosen)
    TablePage().table(COLUMNS, sorted(map(_row, entries)))
    return 0


@command.command("check", short_help="Tell which entry decides over a request.")
@click.argument("principal")
@click.argument("host")
@click.argument("operation")
@click.argument("resource")
@placed
def check(place: CommandPlace, principal: str, host: str, operation: str, resource: str) -> int:
    """Tell which entry decides over an operation of a user at an address.

    The verdict is that of the broker's own code. Exit status: 0 when it is allowed, 1 when it is
    denied.
    """
    kind, name = _resource(resource)
    (asked,) = _operations(operation, kind)[:1]
    source, user = source_of(place), _principal(principal)
    rules = source.rules()
    if user in rules.super_users:
        click.echo(f"allowed: {user} is one of super.users")
        return 0
    verdict = source.book().verdict(
        user, address_of(host), asked, kind, name, by_default=rules.allows_by_default
    )
    if verdict.acl is not None:
        reason = f"by: {verdict.acl}"
    elif verdict.allowed:
        reason = "no entry is about it, and allow.everyone.if.no.acl.found is true"
    else:
        reason = "no entry allows it"
    click.echo(f"{'allowed' if verdict.allowed else 'denied'}: {reason}{rules.caveat}")
    return 0 if verdict.allowed else DENIED


def _checked(creation: AclCreation, operation: AclOperation) -> Acl:
    """An entry by the broker's own rules."""
    creation.operation = operation
    try:
        return acl_of(creation)
    except KafkaError as error:
        raise click.UsageError(error.message) from error


def _principal(text: str) -> str:
    """`User:` is what Kafka's names begin with; without it, it is meant."""
    return text if text.startswith(f"{USER}:") else f"{USER}:{text}"


def _resource(text: str) -> NamedResource:
    kind, colon, name = text.partition(":")
    found = _member(ResourceType, kind)
    if found is ResourceType.CLUSTER and not colon:
        name = CLUSTER_NAME
    if found is ResourceType.USER and name not in {"", ANY_NAME}:
        name = _principal(name)
    if found not in SUPPORTED or not name:
        kinds = ", ".join(f"{_spelled(each)}:NAME" for each in SUPPORTED)
        raise click.UsageError(f"{text!r} is no resource: {kinds}, or cluster")
    return NamedResource(found, name)


def _operations(text: str, kind: ResourceType) -> list[AclOperation]:
    known = (AclOperation.ALL, *SUPPORTED[kind])
    found = [_member(AclOperation, each) for each in text.split(",")]
    for each, written in zip(found, text.split(","), strict=True):
        if each not in known:
            names = ", ".join(map(_spelled, known))
            raise click.UsageError(f"{written!r} is no operation on a {_spelled(kind)}: {names}")
    return [each for each in dict.fromkeys(found) if each is not None]


def _member(kind: type[E], text: str) -> E | None:
    return kind.__members__.get(text.strip().upper().replace("-", "_"))


def _spelled(member: AclOperation | ResourceType) -> str:
    return member.name.lower().replace("_", "-")


def _row(acl: Acl) -> tuple[str, ...]:
    return (
        f"{_spelled(acl.resource_type)}:{acl.name}",
        acl.pattern_type.name.lower(),
        acl.principal,
        acl.host,
        acl.permission.name.lower(),
        _spelled(acl.operation),
    )
