"""Numbers of numpy as Arrow arrays and back: Arrow's own conversions are what they are held to."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipeline.decode.arrays import array_of, derived, mask_of, numbers_of, repeated

INT64 = st.integers(-(2**63), 2**63 - 1)
MASKED = st.lists(st.tuples(INT64, st.booleans()), max_size=40)


@given(MASKED, st.integers(0, 5))
def test_numbers_and_nulls_are_those_of_arrow(rows: list[tuple[int, bool]], first: int) -> None:
    numbers = np.array([number for number, _ in rows], np.int64)
    is_there = np.array([there for _, there in rows], np.bool_)
    made = array_of(numbers, pa.int64(), is_there)
    made.validate(full=True)
    assert made.equals(pa.array(numbers, mask=~is_there))
    part = made.slice(first)
    halved = derived(part, lambda stored: (stored // 2**33).astype(np.int32), pa.int32())
    halved.validate(full=True)
    assert halved.to_pylist() == [None if n is None else n // 2**33 for n in part.to_pylist()]


@given(arrays(np.int64, st.integers(0, 40)), st.integers(0, 40), st.integers(0, 40))
def test_a_part_of_an_array_gives_its_own_numbers(
    numbers: "np.ndarray[tuple[int], np.dtype[np.int64]]", first: int, count: int
) -> None:
    part = array_of(numbers, pa.timestamp("us", "UTC")).slice(first, count)
    assert numbers_of(part).tolist() == numbers[first : first + count].tolist()


@given(arrays(np.bool_, st.integers(0, 40)))
def test_a_mask_filters(mask: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
    kept = array_of(np.arange(len(mask)), pa.int64()).filter(mask_of(mask))
    assert kept.to_pylist() == np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(
    ("value", "kind"),
    [("tänze", pa.string()), ("", pa.string()), (7, pa.int32()), (-(2**63), pa.int64()),
     (None, pa.int64())],
)  # fmt: skip
@pytest.mark.parametrize("count", [0, 1, 9])
def test_a_value_is_repeated(value: str | int | None, kind: pa.DataType, count: int) -> None:
    made = repeated(value, kind, count)
    made.validate(full=True)
    assert made.equals(pa.array([value] * count, kind))


def test_what_would_be_other_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="not as wide"):
        array_of(np.arange(3), pa.int32())
    with pytest.raises(ValueError, match="not 64 bits"):
        numbers_of(pa.array([1], pa.int32()))
    with pytest.raises(ValueError, match="1 of the numbers are null"):
        numbers_of(pa.array([1, None]))
