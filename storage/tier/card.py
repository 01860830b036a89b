"""The tier's card, `horolog.json`: its format, and the cluster that it belongs to.

The first broker that copies makes it; nobody changes it. Two clusters in one place would take each
other's manifests for their own.
"""

from storage.errors import CorruptCheckpoint, StorageError
from storage.tier.names import CARD
from storage.tier.port import ObjectExists, ObjectMissing, ObjectStore
from storage.tier.sealed import opened, sealed

FORMAT = 1


class ForeignTier(StorageError):  # noqa: N818 - what was found
    """The place in the store belongs to another cluster."""


class NoTier(StorageError):  # noqa: N818 - what was found
    """There is no tier at that place in the store."""


def claim(store: ObjectStore, cluster_id: str) -> None:
    """Makes the card, or finds that it is this cluster's. Again after a StoreError.

    ForeignTier; CorruptCheckpoint, NewerFormat for a card that cannot be read.
    """
    try:
        store.put_new(CARD, sealed({"format": FORMAT, "cluster_id": cluster_id}))
    except ObjectExists:
        owner = cluster_of(store)
        if owner != cluster_id:
            raise ForeignTier(
                CARD, f"this place belongs to the cluster {owner}, not to {cluster_id}"
            ) from None


def cluster_of(store: ObjectStore) -> str:
    """The cluster that the tier belongs to. NoTier, CorruptCheckpoint, NewerFormat, StoreError."""
    try:
        document = opened(CARD, store.get(CARD), FORMAT, "card of a tier")
    except ObjectMissing as error:
        raise NoTier(CARD, "there is no tier at this place: no broker has copied there") from error
    owner = document.get("cluster_id")
    if not isinstance(owner, str):
        raise CorruptCheckpoint(CARD, "it names no cluster")
    return owner
