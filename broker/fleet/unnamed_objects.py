"""Removes objects that no row names any more, when nobody can be reading them.

Any node does it, and several at once do no harm: a name is never used again.
"""

from broker.fleet.catalog.port import FleetCatalog
from broker.fleet.committer import CommitStore

AT_ONCE = 500


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
