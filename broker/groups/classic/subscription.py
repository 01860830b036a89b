"""Topics that the members of a consumer group read, from their metadata.

The metadata has the form of the consumer protocol: a version, then the names of topics; what
follows differs by version and is not needed. Rules: KIP-211, Kafka's `ConsumerProtocol`.
"""

from collections.abc import Iterable
from struct import Struct, error

from protocol.text import AS_JAVA

CONSUMER = "consumer"

_SHORT = Struct(">h")
_HEAD = Struct(">hi")


def topics_of(metadata: bytes) -> frozenset[str] | None:
    """The topics that one member reads; None when it does not say so in that way."""
    try:
        version, count = _HEAD.unpack_from(metadata)
        if version < 0:
            return None
        position, topics = _HEAD.size, set()
        for _ in range(count):
            (size,) = _SHORT.unpack_from(metadata, position)
            position += _SHORT.size
            name = metadata[position : position + size]
            if size < 0 or len(name) != size:
                return None
            topics.add(name.decode(errors=AS_JAVA))
            position += size
    except (error, UnicodeDecodeError):
        return None
    return frozenset(topics)


def union_of(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics that any of the members reads; None when one of them does not say."""
    topics: set[str] = set()
    for each in metadata:
        named = topics_of(each)
        if named is None:
            return None
        topics |= named
    return frozenset(topics)
