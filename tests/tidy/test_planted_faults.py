"""The list of planted faults keeps up with the code."""

from pathlib import Path

from tests.prove.mutants import listed

ROOT = Path(__file__).resolve().parents[2]


def test_every_planted_fault_finds_its_line_and_its_tests() -> None:
    faults = listed()
    assert len(faults) >= 30
    lost = [each.name for each in faults if (ROOT / each.file).read_text().count(each.before) != 1]
    assert not lost, "the code has changed: plant them anew in tests/prove/mutants.toml"
    tests = {test.partition("::")[0] for each in faults for test in each.caught_by}
    assert not [test for test in tests if not (ROOT / test).exists()]
