"""Changes of what a fleet has together, each with the one that takes it back."""

from broker.quotas.table import QuotaTable
from broker.security.acl import Acl
from broker.security.acl_filter import AclFilter
from broker.security.credentials import Credential, CredentialKey, Mechanism
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType
from tests.support.worlds.handler_world import World

ACL = Acl(
    ResourceType.TOPIC, PatternType.LITERAL, "t", "User:alice", "*",
    AclOperation.READ, AclPermission.ALLOW,
)  # fmt: skip
ALICE = CredentialKey("alice", Mechanism.SCRAM_SHA_256)
CREDENTIAL = Credential(b"salt" * 5, 4096, b"s" * 32, b"k" * 32)
QUOTA = QuotaTable({(("user", "alice"),): {"producer_byte_rate": 1000.0}})


async def add_acl(node: World) -> None:
    await node.broker.authority.add([ACL])


async def remove_acl(node: World) -> None:
    await node.broker.authority.remove([AclFilter(*ACL)])


async def add_user(node: World) -> None:
    await node.broker.users.change(lambda rows: {**rows, ALICE: CREDENTIAL})


async def remove_user(node: World) -> None:
    await node.broker.users.change(lambda _: {})


async def add_quota(node: World) -> None:
    await node.broker.quotas.change(lambda _: QUOTA)


async def remove_quota(node: World) -> None:
    await node.broker.quotas.change(lambda _: QuotaTable())
