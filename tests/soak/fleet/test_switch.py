"""Runs at the same time have networks of their own."""

import os

import pytest

from tests.soak.fleet.switch import THIRDS, Switch, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def test_two_runs_whose_processes_prefer_the_same_networks_have_different_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, addresses = os.getpid(), set[str]()
    switches = list[Switch]()
    try:
        for pid in (first, first + len(THIRDS)):
            monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
            switches.append(Switch(["catalog"], [1]))
            addresses.add(switches[-1].machine("catalog"))
    finally:
        for each in switches:
            each.end()
    assert len(addresses) == len(switches)
