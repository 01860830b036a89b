"""The scene of the comparison of authorization: who asks, of what, and by which ACLs.

Each API is asked of the same few names by every principal, so what differs between two answers is
the right of the one who asked.
"""

from typing import NamedTuple

GUARDED, OPEN, MISSING = "guarded", "open", "guarded-missing"
"""Names that some may use, and that `User:*` may use; one of the first kind that does not exist."""
DOOMED, OPEN_DOOMED = "guarded-doomed", "open-doomed"
"""Names that are deleted and made again, many times: as the first two otherwise."""
LIVE = "guarded-live"
"""A group of the newer protocol with one member, which reads the guarded topic."""
TOPICS = (GUARDED, OPEN, DOOMED, OPEN_DOOMED)
GROUPS = TOPICS
TRANSACTIONS = (GUARDED, OPEN)
TOKENS = {GUARDED: ("super", "implied"), OPEN: ("super",)}
"""Delegation tokens by the user that owns them, and who may renew them."""
LITERAL, PREFIXED = 3, 4
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = 2, 3, 4, 5, 6, 7
ANY, ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 1, 2, 3, 4, 5, 6, 7, 8
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, CREATE_TOKENS, DESCRIBE_TOKENS = range(10, 15)
DENY, ALLOW = 2, 3
KAFKA_CLUSTER = "kafka-cluster"
SUPER = "super"
PRINCIPALS = {
    SUPER: "a super user",
    "exact": "ALL on each guarded name, literally",
    "prefix": "each operation on what begins with `guarded`",
    "denied": "ALL on that prefix; READ of topic and group, WRITE of the transaction are denied",
    "implied": "READ, WRITE, ALTER and ALTER_CONFIGS, from which the right to describe follows",
    "apart": "groups and transactions, no topic",
    "deleter": "DELETE alone of topics and groups; DESCRIBE of all delegation tokens",
    "cluster": "ALL on the cluster alone",
    "unseeing": "ALL on that prefix; DESCRIBE is denied",
    "elsewhere": "ALL on everything, for another host",
    "none": "nothing but what `User:*` has",
    "barred": "WRITE is denied on a prefix of what `User:*` may write",
    "starred": "WRITE is denied on every topic",
    "nearly": "WRITE is denied on the open topic alone, literally",
    "idempotent": "WRITE is denied on every topic; IDEMPOTENT_WRITE of the cluster",
}
WRITERS = ("barred", "starred", "nearly", "idempotent")
"""Principals that only ask to write: they try the rule for "any topic"."""
WRITING = ("InitProducerId", "Produce")


class Acl(NamedTuple):
    """One binding, in the numbers of the protocol."""

    principal: str
    resource: int
    name: str
    operation: int
    pattern: int = LITERAL
    host: str = "*"
    permission: int = ALLOW


def acls() -> list[Acl]:
    """Every binding of the scene."""
    named = (TOPIC, GROUP, TRANSACTIONAL_ID)
    literal = (GUARDED, MISSING, DOOMED, LIVE)
    found = [Acl("exact", kind, name, ALL) for kind in named for name in literal]
    found += [Acl("prefix", kind, GUARDED, op, PREFIXED) for kind in named for op in _of(kind)]
    found += [Acl("denied", kind, GUARDED, ALL, PREFIXED) for kind in named]
    refused = ((TOPIC, READ), (GROUP, READ), (TRANSACTIONAL_ID, WRITE))
    found += [
        Acl("denied", kind, name, op, permission=DENY) for kind, op in refused for name in literal
    ]
    implied = (
        (TOPIC, READ), (TOPIC, ALTER_CONFIGS), (GROUP, READ), (TRANSACTIONAL_ID, WRITE),
    )  # fmt: skip
    found += [Acl("implied", kind, GUARDED, op, PREFIXED) for kind, op in implied]
    found += [Acl("implied", CLUSTER, KAFKA_CLUSTER, op) for op in (ALTER, ALTER_CONFIGS)]
    found += [Acl("apart", kind, GUARDED, ALL, PREFIXED) for kind in (GROUP, TRANSACTIONAL_ID)]
    found += [Acl("deleter", kind, GUARDED, DELETE, PREFIXED) for kind in (TOPIC, GROUP)]
    found += [Acl("cluster", CLUSTER, KAFKA_CLUSTER, ALL)]
    found += [Acl("unseeing", kind, GUARDED, ALL, PREFIXED) for kind in named]
    found += [Acl("unseeing", kind, GUARDED, DESCRIBE, PREFIXED, permission=DENY) for kind in named]
    found += [Acl("elsewhere", kind, "*", ALL, host="192.0.2.7") for kind in named]
    found += [Acl("elsewhere", CLUSTER, KAFKA_CLUSTER, ALL, host="192.0.2.7")]
    found += [Acl("*", kind, OPEN, ALL, PREFIXED) for kind in named]
    return found + _writers() + _token_makers()


def _token_makers() -> list[Acl]:
    """Rights on users as owners of tokens, and on tokens."""
    found = [Acl("exact", USER, f"User:{name}", ALL) for name in (GUARDED, MISSING)]
    guarded, operations = f"User:{GUARDED}", (CREATE_TOKENS, DESCRIBE_TOKENS)
    found += [Acl("prefix", USER, guarded, op, PREFIXED) for op in operations]
    found += [Acl(each, USER, guarded, ALL, PREFIXED) for each in ("denied", "unseeing")]
    found += [Acl("denied", USER, guarded, CREATE_TOKENS, PREFIXED, permission=DENY)]
    found += [Acl("unseeing", USER, guarded, DESCRIBE_TOKENS, PREFIXED, permission=DENY)]
    found += [
        Acl("elsewhere", kind, "*", ALL, host="192.0.2.7") for kind in (USER, DELEGATION_TOKEN)
    ]
    found += [Acl("deleter", DELEGATION_TOKEN, "*", DESCRIBE)]
    return [*found, Acl("*", USER, f"User:{OPEN}", ALL, PREFIXED)]


def _writers() -> list[Acl]:
    """Denials beside a prefix that `User:*` may write."""
    return [
        Acl("barred", TOPIC, OPEN[:-1], WRITE, PREFIXED, permission=DENY),
        Acl("starred", TOPIC, "*", WRITE, permission=DENY),
        Acl("nearly", TOPIC, OPEN, WRITE, permission=DENY),
        Acl("idempotent", TOPIC, "*", WRITE, permission=DENY),
        Acl("idempotent", CLUSTER, KAFKA_CLUSTER, IDEMPOTENT_WRITE),
    ]


def asking(api: str) -> list[str]:
    """The principals that ask an API."""
    return [each for each in PRINCIPALS if each not in WRITERS or api in WRITING]


def _of(kind: int) -> tuple[int, ...]:
    """The operations that a kind of resource knows."""
    if kind == TOPIC:
        return (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
    if kind == GROUP:
        return (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
    return (WRITE, DESCRIBE)
