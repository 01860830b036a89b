"""Shards of partitions: by the topic's id and the partition's number, the same on every node."""

from math import gcd
from uuid import UUID

from crc32c import crc32c

GOLDEN = 0.618


def shard_of(topic_id: UUID, index: int, shards: int) -> int:
    """The shard of a partition, of so many."""
    first: int = crc32c(topic_id.bytes)
    return (first + index * stride(shards)) % shards


def stride(shards: int) -> int:
    """From the shard of one partition to that of the next: so that few of them are spread, too.

    A node has runs of neighbours, so neighbours would have one owner. By the golden ratio any few
    in a row lie far apart, and all shards come before one comes again.
    """
    most = round(shards * GOLDEN)
    return next(each for each in range(max(most, 1), shards + 1) if gcd(each, shards) == 1)
