"""Every seed of the fuzzer and every input that was kept goes through its target."""

from itertools import chain

import pytest

from tests.fuzz.seeds import seeds_of
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_its_seeds_and_what_was_kept(name: str) -> None:
    tried = 0
    for data in chain([b"", b"\0", b"\xff" * 70], seeds_of(name)):
        TARGETS[name](data)
        tried += 1
    assert tried > 3, f"{name} has no seeds"
