"""While a job loads, nothing is collected; after it, everything that comes later is."""

import gc

import pytest

from pipeline.cli.quick_import import loading


@pytest.mark.parametrize("was_enabled", [True, False])
def test_collection_rests_meanwhile_and_is_as_it_was(*, was_enabled: bool) -> None:
    if not was_enabled:
        gc.disable()
    try:
        with loading():
            assert not gc.isenabled()
        with pytest.raises(KeyError), loading():
            raise KeyError
        assert gc.isenabled() is was_enabled
    finally:
        gc.enable()


def test_no_collection_looks_at_what_was_loaded() -> None:
    gc.unfreeze()
    with loading():
        loaded: list[list[int]] = [[] for _ in range(1000)]
    assert gc.get_freeze_count() > len(loaded)
