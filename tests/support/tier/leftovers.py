"""Objects of a tier that nothing names, and names without an object."""

from collections.abc import Collection
from contextlib import suppress

from storage.errors import CorruptCheckpoint
from storage.tier.manifests.reading import read_newest
from storage.tier.names import RECORDS, SIDE, PartitionKeys, is_probe, object_of
from storage.tier.port import ObjectMissing, ObjectStore


def named_by(store: ObjectStore, keys: PartitionKeys) -> set[str]:
    """Objects that the newest manifest of a partition names."""
    newest = read_newest(store, keys)
    rows = () if newest is None else newest.segments
    return {
        keys.segment(row.base_offset, row.unique, suffix)
        for row in rows
        for suffix in (RECORDS, SIDE)
    }


def named_bytes(store: ObjectStore, topic: str) -> int:
    """Bytes of the records that the newest manifests of a topic name."""
    found = (object_of(each.key) for each in store.list(f"topics/{topic}/"))
    partitions = {name.keys for name in found if name is not None}
    newest = (read_newest(store, keys) for keys in partitions)
    return sum(row.size_bytes for each in newest if each is not None for row in each.segments)


def unnamed(store: ObjectStore) -> set[str]:
    """Objects of segments that no newest manifest names, and that were there before it was read."""
    found = {each.key: object_of(each.key) for each in store.list("topics/")}
    segments = {key: name for key, name in found.items() if name is not None and name.unique}
    for keys in {name.keys for name in segments.values()}:
        # Of a topic that is being removed, perhaps a part of its manifests: nothing names them.
        with suppress(ObjectMissing, CorruptCheckpoint):
            for key in named_by(store, keys):
                segments.pop(key, None)
    return set(segments)


def missing(store: ObjectStore) -> set[str]:
    """Objects that a newest manifest names, and that are not there."""
    found = {each.key: object_of(each.key) for each in store.list("topics/")}
    partitions = {name.keys for name in found.values() if name is not None}
    named: set[str] = set()
    for keys in partitions:
        named |= named_by(store, keys)
    return named - set(found)


def leftovers(store: ObjectStore, gone: Collection[str]) -> set[str]:
    """Objects that ought to be gone: unnamed segments, probes, whatever topics in `gone` had."""
    found = {each.key for each in store.list("") if is_probe(each.key)}
    for topic in gone:
        found |= {each.key for each in store.list(f"topics/{topic}/")}
    return found | unnamed(store)
