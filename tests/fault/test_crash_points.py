"""The power goes at every call: what was acknowledged as durable is there, nothing is made up.

`python tests/fault/test_crash_points.py 10000` visits so many crash points and says how fast.
"""

import sys
import time

import pytest

from tests.support.disk.crash_scenarios import SCENARIOS, run


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("seed", range(2))
def test_promises_survive_a_power_cut_at_every_call(name: str, seed: int) -> None:
    world = run(name, seed, survivals=2)
    assert world.points > 30
    assert world.damaged <= world.points // 100, "logs end up read-only after mere power cuts"
    assert world.believed > 0, "readers of the files had no zone to go by"


@pytest.mark.parametrize("name", SCENARIOS)
def test_promises_survive_a_power_cut_during_recovery(name: str) -> None:
    assert run(name, 7, survivals=1, nested=True).points > 30


def main(wanted: int) -> None:
    """Visit that many crash points, all scenarios in turn."""
    began, points, damaged, seed = time.monotonic(), 0, 0, 0
    while points < wanted:
        for name in SCENARIOS:
            world = run(name, seed, survivals=4, nested=seed % 3 == 2)
            points += world.points
            damaged += world.damaged
        seed += 1
    seconds = time.monotonic() - began
    print(f"{points} crash points in {seconds:.1f} s, {damaged} logs read-only, seeds 0-{seed - 1}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
