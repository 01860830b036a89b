"""Manifests that nothing needs any longer but a restore to a time long ago."""

from collections.abc import Sequence

from storage.tier.manifests.manifest import apply
from storage.tier.manifests.reading import is_full
from storage.tier.names import PartitionKeys, number_of
from storage.tier.port import ObjectFacts, ObjectStore


def past_manifests(
    store: ObjectStore,
    keys: PartitionKeys,
    found: Sequence[ObjectFacts],
    put_before_ms: int,
    counts: int | None = None,
) -> list[ObjectFacts]:
    """Those among some manifests of one place that come before the last full one from back then.

    `put_before_ms`, ms by the store: every moment since then can be restored. `counts`: number of
    the one that counts in a fleet, where later ones may come to nothing; None: the newest does.
    Empty where that full one is not what its number says. CorruptCheckpoint, NewerFormat when it
    cannot be read; StoreError.
    """
    numbered = sorted((number_of(each.key) or 0, each) for each in found)
    full = (
        number
        for number, each in numbered
        if is_full(number)
        and each.modified_ms <= put_before_ms
        and (counts is None or number <= counts)
    )
    first = max(full, default=0)
    past = [each for number, each in numbered if 0 < number < first]
    return past if past and _stands_alone(store, keys.manifest(first)) else []


def _stands_alone(store: ObjectStore, path: str) -> bool:
    return apply(path, None, store.get(path)) is not None
