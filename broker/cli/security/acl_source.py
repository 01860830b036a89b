"""The ACLs that a command works on: of a running broker, or of a directory that none uses."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from broker.cli.admin_client import REFUSED
from broker.cli.main import CommandFailed
from broker.cli.security.place import CommandPlace, held, settings_of
from broker.cli.security.wire_client import WireClient
from broker.security.acl import Acl
from broker.security.acl_book import MAX_ACLS, AclBook
from broker.security.acl_filter import AclFilter
from broker.security.audit.lines import AdminChange
from config.security.principals import Principals
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType
from protocol.apis.create_acls import AclCreation, CreateAclsRequest
from protocol.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.apis.describe_acls import DescribeAclsRequest
from protocol.apis.describe_cluster import DescribeClusterRequest
from protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

BROKER = 4
SUPER_USERS, BY_DEFAULT = "super.users", "allow.everyone.if.no.acl.found"
EVERYTHING = AclFilter(
    ResourceType.ANY, PatternType.ANY, None, None, None, AclOperation.ANY, AclPermission.ANY
)


class Rules(NamedTuple):
    """The settings beside the entries that decide too."""

    super_users: frozenset[str]
    allows_by_default: bool
    caveat: str = ""


class AclSource(Protocol):
    """ACLs that can be looked at and changed. Everything raises CommandFailed."""

    def matching(self, chosen: AclFilter) -> Iterable[Acl]:
        """The entries that a filter lets through."""

    def add(self, acls: Sequence[Acl]) -> None:
        """Makes entries durable."""

    def remove(self, acls: Sequence[Acl]) -> set[Acl]:
        """Takes entries away; gives those that were there."""

    def book(self) -> AclBook:
        """All of them."""

    def rules(self) -> Rules:
        """The settings beside them."""


def source_of(place: CommandPlace) -> AclSource:
    """The ACLs of a place."""
    return StoredAcls(place) if place.offline else ServedAcls(place.client)


class StoredAcls:
    """Those of a directory."""

    def __init__(self, place: CommandPlace) -> None:
        """Touches nothing."""
        self._directory = place.directory
        self._file = place.file

    def matching(self, chosen: AclFilter) -> Iterable[Acl]:
        """The entries that a filter lets through."""
        return chosen.found_in(self.book())

    def add(self, acls: Sequence[Acl]) -> None:
        """Makes entries durable."""
        self._change(lambda book: book.with_acls(acls))

    def remove(self, acls: Sequence[Acl]) -> set[Acl]:
        """Takes entries away; gives those that were there."""
        before = self._change(lambda book: book.without(acls))
        return {each for each in acls if each in before}

    def book(self) -> AclBook:
        """All of them."""
        return self._change(lambda book: book)

    def rules(self) -> Rules:
        """Those of --config; without it nobody is a super user."""
        settings = settings_of(self._file)
        caveat = "" if self._file else " (super.users are in the file of --config)"
        return Rules(
            frozenset(settings.super_users), settings.allow_everyone_if_no_acl_found, caveat
        )

    def _change(self, change: Callable[[AclBook], AclBook]) -> AclBook:
        """Makes the next book durable; gives the one before."""
        from broker.cli.security.account import leave_traces
        from broker.security.acl_file import FILE_NAME, parse, render

        with held(self._directory) as env:
            path = f"{self._directory}/{FILE_NAME}"
            before = parse(path, env.fs.read_text(path)) if env.fs.exists(path) else AclBook()
            after = change(before)
            if len(after.acls) > MAX_ACLS:
                raise CommandFailed(f"there would be more than {MAX_ACLS} ACLs", REFUSED)
            if after != before:
                env.fs.write_atomically(path, render(after))
                leave_traces(env, self._directory, "horolog acls", _changes(before, after))
        return before


def _changes(before: AclBook, after: AclBook) -> list[AdminChange]:
    """For the security audit."""
    added = [AdminChange("create ACL", a.name, str(a)) for a in after.acls if a not in before]
    removed = [AdminChange("delete ACL", a.name, str(a)) for a in before.acls if a not in after]
    return added + removed


class ServedAcls:
    """Those of a broker."""

    def __init__(self, client: WireClient) -> None:
        """Asks nothing yet."""
        self._client = client

    def matching(self, chosen: AclFilter) -> Iterable[Acl]:
        """The entries that a filter lets through."""
        answer = self._client.call(DescribeAclsRequest(**_filter(chosen)))
        if answer.error_code:
            self._client.refuse(answer.error_code, answer.error_message)
        for resource in answer.resources:
            for each in resource.acls:
                yield Acl(
                    ResourceType(resource.resource_type),
                    PatternType(resource.pattern_type),
                    resource.resource_name,
                    each.principal,
                    each.host,
                    AclOperation(each.operation),
                    AclPermission(each.permission_type),
                )

    def add(self, acls: Sequence[Acl]) -> None:
        """Makes entries durable."""
        creations = [
            AclCreation(
                resource_type=each.resource_type,
                resource_name=each.name,
                resource_pattern_type=each.pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in acls
        ]
        self._check(self._client.call(CreateAclsRequest(creations=creations)).results)

    def remove(self, acls: Sequence[Acl]) -> set[Acl]:
        """Takes entries away; gives those that were there."""
        filters = [DeleteAclsFilter(**_filter(AclFilter(*each))) for each in acls]
        results = self._client.call(DeleteAclsRequest(filters=filters)).filter_results
        self._check(results)
        return {acl for acl, each in zip(acls, results, strict=True) if each.matching_acls}

    def book(self) -> AclBook:
        """All of them."""
        return AclBook(self.matching(EVERYTHING))

    def rules(self) -> Rules:
        """Those that the broker tells."""
        brokers = self._client.call(DescribeClusterRequest()).brokers
        asked = DescribeConfigsResource(
            resource_type=BROKER,
            resource_name=str(brokers[0].broker_id) if brokers else "",
            configuration_keys=[SUPER_USERS, BY_DEFAULT],
        )
        (answer,) = self._client.call(DescribeConfigsRequest(resources=[asked])).results
        values = {each.name: each.value or "" for each in answer.configs}
        if answer.error_code or len(values) < 2:
            return Rules(
                frozenset(),
                allows_by_default=False,
                caveat=" (the broker does not show its super.users)",
            )
        users = frozenset(Principals().parse(values[SUPER_USERS]))
        return Rules(users, values[BY_DEFAULT] == "true")

    def _check(self, results: Iterable[Any]) -> None:
        for each in results:
            if each.error_code:
                self._client.refuse(each.error_code, each.error_message)


def _filter(chosen: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": chosen.resource_type,
        "resource_name_filter": chosen.name,
        "pattern_type_filter": chosen.pattern_type,
        "principal_filter": chosen.principal,
        "host_filter": chosen.host,
        "operation": chosen.operation,
        "permission_type": chosen.permission,
    }
