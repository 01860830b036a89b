"""Counts of times in fixed buckets on a logarithmic scale: exact to add up, close to read. Pure.

Eight buckets an octave, for both signs, in ms: a quantile read from them is at most an eighth off.
Buckets are the same everywhere, so counts of workers, hours and partitions add up without loss.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

AN_OCTAVE = 8
_EXACT = 16
"""Numbers below this have buckets of their own."""
_SHIFT = _EXACT - AN_OCTAVE * 4

Counts = Mapping[int, int]


def count_into(counts: Counter[int], values: NDArray[np.int64]) -> None:
    """Count each of the values (ms)."""
    if not len(values):
        return
    found, times = np.unique(buckets_of(values), return_counts=True)
    for bucket, count in zip(found.tolist(), times.tolist(), strict=True):
        counts[bucket] += count


def buckets_of(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bucket of each value."""
    size = np.abs(np.maximum(values, -(2**63) + 1))
    large = np.floor(np.log2(np.maximum(size, _EXACT)) * AN_OCTAVE).astype(np.int64) + _SHIFT
    return np.sign(values) * np.where(size < _EXACT, size, large)


def upper_bound(bucket: int) -> int:
    """No value in the bucket is greater, but for rounding."""
    if bucket < 0:
        return -_least(-bucket)
    return _least(bucket + 1) - 1


def quantile(counts: Counts, share: float) -> int | None:
    """A bound that so large a share of the values does not exceed; None without values."""
    total = sum(counts.values())
    seen = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= share * total:
            return upper_bound(bucket)
    return None


def _least(bucket: int) -> int:
    """The smallest size that a bucket from 0 up holds."""
    if bucket < _EXACT:
        return bucket
    return int(np.ceil(2 ** ((bucket - _SHIFT) / AN_OCTAVE)))
