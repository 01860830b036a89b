"""Ends of the partitions that groups read and other nodes of a fleet lead: asked now and then, so
that a group's coordinator knows its whole lag.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from broker.groups.classic.group import Group
from broker.partitions.partition import Partition
from broker.topics.metadata_image import MetadataImage

MOST_PARTITIONS = 10_000
"""Looked at in one round; those beyond have no lag."""
Ends = Callable[[Iterable[Partition]], Awaitable[Mapping[Partition, int]]]
"""High watermarks, of those partitions whose leaders say so."""


async def refresh_ends(groups: Iterable[Group], image: MetadataImage, ends: Ends) -> None:
    """Has the ends as of now. A leader that does not answer has none from then on."""
    wanted = list(_elsewhere(groups, image))
    if not wanted:
        return
    found = await ends(wanted)
    for partition in wanted:
        if partition.leader_elsewhere is not None:
            partition.end_elsewhere = found.get(partition)


def _elsewhere(groups: Iterable[Group], image: MetadataImage) -> Iterator[Partition]:
    """Each partition once."""
    seen: set[Partition] = set()
    for group in groups:
        for name, index in group.offsets:
            topic = image.topics.get(name)
            found = None if topic is None else topic.partition(index)
            if found is None or found.leader_elsewhere is None or found in seen:
                continue
            if len(seen) >= MOST_PARTITIONS:
                return
            seen.add(found)
            yield found
