"""Promises of rows and store together about segments, at any moment of a history."""

from collections.abc import Iterator

from broker.fleet.catalog.rows import ManifestName, PartitionKey
from storage.tier.manifests.manifest import RemoteSegment
from storage.tier.manifests.reading import read_one
from storage.tier.names import RECORDS, SIDE, EpochKeys, PartitionKeys, object_of
from storage.tier.tiered_log import TieredLog
from tests.support.fleet.model_catalog import Part
from tests.support.tier.memory_store import MemoryStore


class NamedSegments:
    """Segments that the rows name, by partition."""

    def __init__(self, store: MemoryStore) -> None:
        """Nothing was read."""
        self._store = store
        self._read: dict[PartitionKey, tuple[ManifestName, tuple[RemoteSegment, ...]]] = {}

    def check(self, key: PartitionKey, part: Part, asked: int) -> None:
        """All of them are in the store, and they follow one another up to the first commit.

        `asked`: the start that clients and retention want it to have; compaction may have left out
        what is before it already.
        """
        if not part.manifest.number:
            return
        rows = self._rows(key, part)
        for name in self._names(key, part, rows):
            assert name in self._store.objects, f"{name} is named, and gone"
        at = max(part.log_start, rows[0].base_offset) if rows else part.log_start
        assert not rows or at <= max(part.log_start, asked), f"{key.number} begins at {at}"
        for each in rows:
            if each.end_offset > part.log_start:
                assert each.base_offset <= at, f"{key.number} has a gap in the store at {at}"
                at = each.end_offset
        begin = part.spans[0][0].base_offset if part.spans else at
        assert begin <= at, f"{key.number} has neither segment nor commit from {at} to {begin}"

    def check_swept(self, key: PartitionKey, part: Part, led: TieredLog) -> None:
        """Nothing is left of leaders of before, nor of copies that came to nothing."""
        spoken_for = led.spoken_for()
        for name in self._store.objects:
            found = object_of(name)
            if found is None or found.keys.partition != key.number:
                continue
            if found.unique:
                assert found.unique in spoken_for, f"{name} is an orphan"
            elif led.is_named:  # else those of before count, as far as the rows name one
                assert found.epoch == part.manifest.epoch, f"{name} is of a leader of before"

    def _rows(self, key: PartitionKey, part: Part) -> tuple[RemoteSegment, ...]:
        name, rows = self._read.get(key, (None, ()))
        if name != part.manifest:
            keys = EpochKeys(_keys(key, part), part.manifest.epoch)
            rows = read_one(self._store, keys, part.manifest.number).segments
            self._read[key] = part.manifest, rows
        return rows

    def _names(
        self, key: PartitionKey, part: Part, rows: tuple[RemoteSegment, ...]
    ) -> Iterator[str]:
        keys = _keys(key, part)
        yield EpochKeys(keys, part.manifest.epoch).manifest(part.manifest.number)
        for each in rows:
            if each.end_offset > part.log_start:
                yield keys.segment(each.base_offset, each.unique, RECORDS)
                yield keys.segment(each.base_offset, each.unique, SIDE)


def _keys(key: PartitionKey, part: Part) -> PartitionKeys:
    return PartitionKeys(part.topic, key.topic_id, key.number)
