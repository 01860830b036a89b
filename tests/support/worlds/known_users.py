"""Users of a broker that are there already."""

from collections.abc import Mapping
from typing import cast

from broker.runtime.lanes import DiskLane
from broker.security.credentials import Credential, CredentialKey, Mechanism, derived, salted
from broker.security.users import Users
from broker.security.users_file import UsersFile
from storage.env import Rng
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng
from tests.support.worlds.handler_world import LOG_DIR, InlineLanes

SALT = b"a1b2c3d4e5f6g7h8i9j0k1l2m"


def made(
    mechanism: Mechanism, password: str = "pencil", *, iterations: int = 4096, salt: bytes = SALT
) -> Credential:
    """The credential of a password."""
    key = salted(mechanism, password.encode(), salt, iterations)
    return derived(mechanism, key, salt, iterations)


def users_of(
    rows: Mapping[CredentialKey, Credential],
    fs: SimFileSystem | None = None,
    rng: Rng | None = None,
) -> Users:
    """The store with these users in it, durable on `fs`."""
    disk = fs or SimFileSystem()
    if not disk.exists(LOG_DIR):
        disk.make_dir(LOG_DIR)
    file = UsersFile(disk, LOG_DIR, rng or SeededRng())
    file.write(file.read().with_rows(rows))
    users = Users(disk, cast("DiskLane", InlineLanes()), rng or SeededRng())
    users.load()
    return users
