"""A place has a partition as it is: by its offsets, and by how far compaction has been."""

from uuid import UUID

import pytest

from storage.backup.unchanged import PartitionState, has_all
from storage.files.layout import LOG
from storage.log.compaction_state import CleanPart
from storage.tier.manifests.manifest import FilePart, Manifest, RemoteSegment

SEGMENT = RemoteSegment(3, 8, "0" * 16, {LOG: FilePart(0, 10, 0)}, -1, -1, -1, -1, 0, False)
MANIFEST = Manifest(1, "t", UUID(int=1), 0, 5, (SEGMENT,), cleaned=CleanPart(4, 100))


@pytest.mark.parametrize(
    ("state", "is_there"),
    [
        (PartitionState(5, 9, None), True),
        (PartitionState(5, 9, CleanPart(4, 100)), True),
        (PartitionState(6, 9, None), False),
        (PartitionState(5, 10, None), False),
        (PartitionState(5, 9, CleanPart(6, 100)), False),
        (PartitionState(5, 9, CleanPart(4, 200)), False),
    ],
)
def test_what_a_place_has(state: PartitionState, *, is_there: bool) -> None:
    assert has_all(MANIFEST, state) is is_there


def test_a_place_that_has_no_segment_of_it() -> None:
    assert not has_all(None, PartitionState(0, 0, None))
    assert not has_all(MANIFEST._replace(segments=()), PartitionState(5, 5, None))
