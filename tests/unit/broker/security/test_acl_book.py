"""The verdict of the entries, against Kafka's rules told the long way (StandardAuthorizer)."""

import random
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.runtime.principals import Principal
from broker.security.acl import Acl, address_of
from broker.security.acl_book import AclBook
from broker.security.authority import Authority
from protocol.acls import SUPPORTED, AclPermission, PatternType, ResourceType, bits_of
from protocol.acls import AclOperation as Op

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
NAMES = ("", "a", "ab", "abc", "b", "*")
USERS = ("User:a", "User:b", "User:*")
HOSTS = ("10.0.0.1", "10.0.0.2", "*")
OPERATIONS = (Op.ALL, Op.READ, Op.WRITE, Op.DESCRIBE, Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS)


def acl(
    name: str,
    operation: Op = Op.READ,
    permission: AclPermission = ALLOW,
    pattern: PatternType = LITERAL,
    *,
    user: str = "User:a",
) -> Acl:
    return Acl(TOPIC, pattern, name, user, "*", operation, permission)


def random_acl(dice: random.Random) -> Acl:
    return Acl(
        dice.choice((TOPIC, TOPIC, GROUP)),
        dice.choice((LITERAL, PREFIXED)),
        dice.choice(NAMES[1:]),
        dice.choice(USERS),
        dice.choice(HOSTS),
        dice.choice(OPERATIONS),
        dice.choice((ALLOW, ALLOW, DENY)),
    )


def matches(entry: Acl, name: str) -> bool:
    if entry.pattern_type is PREFIXED:
        return name[: len(entry.name)] == entry.name
    return entry.name in {"*", name}


def implied_by(operation: Op) -> set[Op]:
    """The operations that an allowed one brings along."""
    if operation in {Op.READ, Op.WRITE, Op.DELETE, Op.ALTER}:
        return {operation, Op.DESCRIBE}
    if operation is Op.ALTER_CONFIGS:
        return {operation, Op.DESCRIBE_CONFIGS}
    return {operation}


def by_rules(acls: list[Acl], user: str, host: str, asked: Op, name: str, *, default: bool) -> bool:
    about = [each for each in acls if each.resource_type is TOPIC and matches(each, name)]
    if not about:
        return default
    ours = [
        each for each in about if each.principal in {user, "User:*"} and each.host in {host, "*"}
    ]
    denied = [
        each for each in ours if each.permission is DENY and each.operation in {asked, Op.ALL}
    ]
    allowed = [
        each
        for each in ours
        if each.permission is ALLOW
        and (each.operation is Op.ALL or asked in implied_by(each.operation))
    ]
    return bool(allowed) and not denied


@pytest.mark.parametrize("seed", range(20))
def test_any_entries_and_any_question(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(40):
        acls = [random_acl(dice) for _ in range(dice.randrange(6))]
        book = AclBook(acls)
        questions = product(("User:a", "User:c"), HOSTS[:2], OPERATIONS[1:], NAMES, (True, False))
        for user, host, asked, name, default in questions:
            verdict = book.verdict(user, host, asked, TOPIC, name, by_default=default)
            assert verdict.allowed == by_rules(acls, user, host, asked, name, default=default), (
                acls, user, host, asked, name, default,
            )  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_bits_of_all_operations_are_the_verdicts_on_each(seed: int) -> None:
    dice = random.Random(seed)
    book = AclBook(random_acl(dice) for _ in range(dice.randrange(8)))
    asked = product(USERS[:2], HOSTS[:2], (TOPIC, GROUP), NAMES, (True, False))
    for user, host, kind, name, default in asked:
        bits = book.bits(user, host, kind, name, by_default=default)
        for operation in SUPPORTED[kind]:
            verdict = book.verdict(user, host, operation, kind, name, by_default=default)
            assert bool(bits >> operation & 1) == verdict.allowed, (operation, name)
        assert bits & ~bits_of(SUPPORTED[kind]) == 0


def test_bits_of_a_resource_take_one_look_at_its_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SimpleNamespace(
        authorizer_class_name="x", super_users=(), allow_everyone_if_no_acl_found=False
    )
    lacking: Any = None
    authority = Authority(lacking, lacking, cast("Any", settings_of(settings)), lacking)
    authority.book = AclBook([acl("*", Op.READ), acl("*", Op.WRITE, DENY)])
    rights = authority.rights_of(Principal("User", "a"), "10.0.0.1")
    assert rights is not None
    looks: list[str] = []
    about = AclBook.about
    monkeypatch.setattr(
        AclBook, "about", lambda self, kind, name: looks.append(name) or about(self, kind, name)
    )
    assert rights.bits(TOPIC, "t") == bits_of((Op.READ, Op.DESCRIBE))
    assert looks == ["t"]


def settings_of(settings: object) -> object:
    return SimpleNamespace(broker_config=settings)


def test_the_entry_that_decides_is_named() -> None:
    allowing, denying = acl("a"), acl("a", permission=DENY, user="User:*")
    assert AclBook([allowing]).verdict("User:a", "h", Op.READ, TOPIC, "a", by_default=False) == (
        True,
        allowing,
    )
    assert AclBook([allowing, denying]).verdict(
        "User:a", "h", Op.READ, TOPIC, "a", by_default=True
    ) == (False, denying)


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ([], False),
        ([acl("a", Op.WRITE)], True),
        ([acl("a", Op.ALL)], True),
        ([acl("a", Op.READ)], False),
        ([acl("a", Op.WRITE, user="User:b")], False),
        ([acl("a", Op.WRITE), acl("a", Op.WRITE, DENY)], False),
        ([acl("ab", Op.WRITE), acl("a", Op.WRITE, DENY, PREFIXED)], False),
        ([acl("b", Op.WRITE), acl("a", Op.WRITE, DENY, PREFIXED)], True),
        ([acl("a", Op.WRITE, pattern=PREFIXED), acl("ab", Op.WRITE, DENY, PREFIXED)], True),
        ([acl("a", Op.WRITE, pattern=PREFIXED), acl("a", Op.WRITE, DENY)], True),
        ([acl("*", Op.WRITE), acl("a", Op.WRITE, DENY)], True),
        ([acl("a", Op.WRITE), acl("*", Op.ALL, DENY)], False),
    ],
)
def test_a_right_to_some_resource(acls: list[Acl], expected: bool) -> None:
    """KIP-679: who may write to any topic may be idempotent."""
    assert AclBook(acls).allows_any("User:a", "10.0.0.1", Op.WRITE, TOPIC) is expected


def test_entries_are_there_once_and_in_order() -> None:
    book = AclBook([acl("b"), acl("a"), acl("b")])
    assert [each.name for each in book.acls] == ["b", "a"]
    assert book.with_acls([acl("a"), acl("c")]) == AclBook([acl("b"), acl("a"), acl("c")])
    assert book.without([acl("b")]) == AclBook([acl("a")])


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("FE80::1", "fe80::1"),
        ("example.org", "example.org"),
    ],
)
def test_addresses_are_compared_in_one_form(host: str, address: str) -> None:
    assert address_of(host) == address
