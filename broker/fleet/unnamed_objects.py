"""Removes objects that no row names: those that one named once, and those that none ever did.

Any node does it, and several at once do no harm: a name is never used again. An object that was put
for a commit that never came, of a process that was killed in between, is in no row.
"""

from broker.fleet.catalog.port import FleetCatalog
from broker.fleet.committer import CommitStore

AT_ONCE = 500
MOST_SWEEPS = 100
"""Of commits that were left behind, in one round."""
LEAST_AGE_MS = 24 * 3600 * 1000
"""Far longer than a commit may be on its way behind its object."""


async def remove_unnamed(catalog: FleetCatalog, store: CommitStore) -> int:
    """Removes what may go now; number of objects. CatalogError, StoreError: the rest stays named.

    First the objects, then their rows: what was cut off in between is removed once more.
    """
    count = 0
    while keys := await catalog.trash(AT_ONCE):
        await store.remove(keys)
        await catalog.removed(keys)
        count += len(keys)
        if len(keys) < AT_ONCE:
            break
    return count


async def sweep_commits(catalog: FleetCatalog, keep_ms: int) -> int:
    """Removes rows of commits that were left behind and that nothing names. CatalogError."""
    count = 0
    for _ in range(MOST_SWEEPS):
        found = await catalog.sweep(AT_ONCE, keep_ms)
        count += found
        if found < AT_ONCE:
            break
    return count


async def remove_orphans(catalog: FleetCatalog, store: CommitStore) -> int:
    """Removes objects that are old and in no row; their number. CatalogError, StoreError.

    How old they are the store says: what it has put last is its present.
    """
    found = await store.all()
    now_ms = max((at for _, at in found), default=0)
    old = [key for key, at in found if now_ms - at >= LEAST_AGE_MS]
    count = 0
    for begin in range(0, len(old), AT_ONCE):
        keys = await catalog.unnamed(old[begin : begin + AT_ONCE])
        await store.remove(keys)
        count += len(keys)
    return count
