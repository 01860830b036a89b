"""Model of compaction that knows nothing of the cleaner. Pure.

Of the records below the offset up to which a log is clean, each key's last one stays, and none
without a key (semantics.md 8.3); a tombstone may have gone. Records at or above that offset are
untouched.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.schemas import ALL_COLUMNS

READ = pa.schema([ALL_COLUMNS.field(name) for name in ("offset", "key", "value")])
CONTENT = pa.schema([*READ, *(ALL_COLUMNS.field(name) for name in ("timestampMs", "headers"))])
"""Columns that compaction must leave unchanged."""
DIGEST_BYTES = 16
KEYED = pa.schema([
    pa.field("offset", pa.int64()), pa.field("key", pa.binary()),
    pa.field("size", pa.int64()), pa.field("tombstone", pa.bool_()),
    pa.field("digest", pa.binary(DIGEST_BYTES)),
])  # fmt: skip
"""`digest`: of value, time and headers; null where they were not read."""
SHOWN = 10


class Survivors(NamedTuple):
    """Counts of what stays of a log when it is compacted up to an offset."""

    records: int
    kept: int
    tombstones: int
    """Of those kept."""
    size_bytes: int
    """Of keys and values."""
    kept_bytes: int

    def as_json(self) -> dict[str, Any]:
        """With the share that would go."""
        freed = self.size_bytes - self.kept_bytes
        return {**self._asdict(), "freed_bytes": freed}


class Checked(NamedTuple):
    """A log before and after its compaction, compared with the model."""

    lost: int
    """Records that had to stay and are gone."""
    left_over: int
    """Records that had to go and are there."""
    strange: int
    """Records that were not there before."""
    changed: int
    """Records whose value, time or headers are not what they were."""
    examples: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """True when the cleaner did what the model does."""
        return not (self.lost or self.left_over or self.strange or self.changed)


def keyed(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """`KEYED` of records with the columns of `READ`, or of `CONTENT`."""
    made = []
    for batch in batches:
        key, value = batch.column("key"), batch.column("value")
        sizes = pc.add(
            pc.fill_null(pc.binary_length(key), 0), pc.fill_null(pc.binary_length(value), 0)
        )
        made.append(
            pa.record_batch(
                [
                    batch.column("offset"),
                    key,
                    sizes.cast(pa.int64()),
                    value.is_null(),
                    _digests(batch),
                ],
                schema=KEYED,
            )
        )
    return pa.Table.from_batches(made, KEYED)


def model(table: pa.Table, clean_below: int) -> pa.Table:
    """Records that stay of `keyed` ones when everything below that offset was compacted."""
    dirty = pc.field("offset") >= clean_below
    clean = table.filter(~dirty & pc.field("key").is_valid())
    last = clean.group_by("key").aggregate([("offset", "max")])
    kept = clean.filter(
        pc.is_in(clean.column("offset"), last.column("offset_max").combine_chunks())
    )
    return pa.concat_tables([kept, table.filter(dirty)]).sort_by("offset")


def survivors(table: pa.Table, clean_below: int) -> Survivors:
    """Counts of the records that stay."""
    kept = model(table, clean_below)
    return Survivors(
        table.num_rows,
        kept.num_rows,
        pc.sum(kept.column("tombstone")).as_py() or 0,
        pc.sum(table.column("size")).as_py() or 0,
        pc.sum(kept.column("size")).as_py() or 0,
    )


def check(before: pa.Table, after: pa.Table, clean_below: int) -> Checked:
    """Compare a log that was compacted below an offset with the model of what it was before."""
    wanted = model(before, clean_below)
    must_stay = wanted.filter(~pc.field("tombstone") | (pc.field("offset") >= clean_below))
    lost = _without(must_stay, after)
    there = _without(after, wanted)
    strange = _without(there, before)
    left_over = _without(there, strange)
    changed = _without(_without(after, strange), before, ("offset", "key", "digest"))
    examples = [
        *(f"lost: offset {at}" for at in _offsets(lost)),
        *(f"left over: offset {at}" for at in _offsets(left_over)),
        *(f"was never there: offset {at}" for at in _offsets(strange)),
        *(f"is not what it was: offset {at}" for at in _offsets(changed)),
    ]
    return Checked(
        lost.num_rows, left_over.num_rows, strange.num_rows, changed.num_rows,
        tuple(examples[:SHOWN]),
    )  # fmt: skip


def _digests(batch: pa.RecordBatch) -> pa.Array:
    """Of each record's value, time and headers; nulls where the batch has no times."""
    if "timestampMs" not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.binary(DIGEST_BYTES))
    columns = (batch.column(name).to_pylist() for name in ("timestampMs", "headers", "value"))
    found = [_digest(*each) for each in zip(*columns, strict=True)]
    return pa.array(found, pa.binary(DIGEST_BYTES))


def _digest(time_ms: int, headers: list[dict[str, Any]] | None, value: bytes | None) -> bytes:
    pairs = [(each["key"], each["value"]) for each in headers or ()]
    made = blake2b(repr((time_ms, pairs, value is None)).encode(), digest_size=DIGEST_BYTES)
    made.update(value or b"")
    return made.digest()


def _without(
    table: pa.Table, other: pa.Table, names: tuple[str, ...] = ("offset", "key")
) -> pa.Table:
    """The rows that the other one has none like, by these columns, of which offset is one."""
    joined = table.append_column("row", pa.array(range(table.num_rows), pa.int64())).join(
        other.select(names).append_column(
            "found", pa.array([True] * other.num_rows, pa.bool_())
        ),
        keys="offset", right_suffix="_there",
    )  # fmt: skip
    found = pc.fill_null(joined.column("found"), False)
    for name in names[1:]:
        mine, there = joined.column(name), joined.column(f"{name}_there")
        same = pc.fill_null(pc.equal(mine, there), False)
        found = pc.and_(found, pc.or_(same, pc.and_(mine.is_null(), there.is_null())))
    rows = joined.filter(pc.invert(found)).column("row").combine_chunks().sort()
    return table.take(rows)


def _offsets(table: pa.Table) -> list[int]:
    offsets: list[int] = table.column("offset").slice(0, SHOWN).to_pylist()
    return offsets
