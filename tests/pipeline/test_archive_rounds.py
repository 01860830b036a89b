"""Rounds of an archive: their sizes, and that they are whole in order whatever is done first."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.sinks.archive.rounds import ArchiveStretch, Rounds
from pipeline.sinks.archive.values import Done, Stream

STREAM = Stream("t", "made", 0)


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 100), st.data())
def test_rounds_become_whole_in_order(sizes: list[int], budget: int, data: st.DataObject) -> None:
    stretches = [ArchiveStretch(STREAM, n, n + 1, size, None) for n, size in enumerate(sizes)]
    rounds = Rounds(stretches, budget)
    handed_out = [list(each) for each in rounds]
    assert [each for part in handed_out for each in part] == stretches
    for part in handed_out:
        assert len(part) == 1 or sum(each.size_bytes for each in part) <= budget
    whole: list[list[int]] = []
    for each in data.draw(st.permutations(stretches)):
        assert rounds.take(Done(STREAM.key, each.first, each.until, 1, 0, ())) == each.size_bytes
        whole += [sorted(done.first for done in part) for part in rounds.whole()]
        so_far = handed_out[: len(whole)]
        assert whole == [[stretch.first for stretch in part] for part in so_far]
    assert len(whole) == len(handed_out)


def test_a_round_waits_for_those_before_it() -> None:
    rounds = Rounds([ArchiveStretch(STREAM, n, n + 1, 10, None) for n in range(3)], 10)
    assert len(list(rounds)) == 3
    for first, expected in ((1, []), (2, []), (0, [0, 1, 2])):
        rounds.take(Done(STREAM.key, first, first + 1, 1, 0, ()))
        assert [done.first for part in rounds.whole() for done in part] == expected
