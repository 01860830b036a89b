"""Compiled and as source the times nearest to the limits are the same, and what a model says."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from protocol.records import gaps
from protocol.records.gaps import NO_EDGES, Edges
from tests.support.records.record_walkers import from_source

SOURCE = from_source("gaps")
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
OLDEST, LATEST = 1000, 2000
TIMES = (
    st.integers(900, 2100)
    | st.integers(INT64_MIN, INT64_MAX)
    | st.sampled_from([-1, OLDEST, LATEST, INT64_MIN, INT64_MAX])
)


@given(st.lists(TIMES, max_size=20), st.integers(0, 20))
def test_edges_are_the_times_next_to_the_limits(times: list[int], cut: int) -> None:
    outline = array("q", [number for at in times for number in (0, 0, 0, 0, 0, 0, at, 0)])
    seen = [array("q", NO_EDGES), array("q", NO_EDGES)]
    for module, edges in zip((gaps, SOURCE), seen, strict=True):
        for part in (outline[: cut * 8], outline[cut * 8 :]):
            module.note_edges(part, len(part) // 8, OLDEST, LATEST, edges)
    known = [at for at in times if at != -1]
    usual = [at for at in known if OLDEST <= at <= LATEST]
    wanted = Edges(
        max((at for at in known if at < OLDEST), default=INT64_MIN),
        min(usual, default=INT64_MAX),
        max(usual, default=INT64_MIN),
        min((at for at in known if at > LATEST), default=INT64_MAX),
    )
    assert [Edges(*each) for each in seen] == [wanted, wanted]
