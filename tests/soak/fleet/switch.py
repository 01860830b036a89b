"""Real networks between the nodes of a run and this machine: namespaces, cables and a switch.

Each node is in a network namespace of its own and has a cable to each network; this machine is in
all of them. A cable that is cut carries nothing in either direction, and neither end is told.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain

MACHINE = 254
NETWORKS_AT_MOST = 4
THIRDS = range(0, 240, NETWORKS_AT_MOST)
"""Third bytes of the first network of a run."""


def why_not() -> str | None:
    """A reason why there are no namespaces here; None where they can be made."""
    if os.getuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the command ip (Debian: iproute2)"
    name = f"probe{os.getpid()}"
    try:
        _ip("netns", "add", name)
        _ip("-n", name, "link", "add", "probe", "type", "bridge")
    except subprocess.CalledProcessError as failure:
        return f"no network namespaces here: {failure.stderr.strip()}"
    finally:
        with suppress(subprocess.CalledProcessError):
            _ip("netns", "delete", name)
    return None


def _free_third() -> int:
    """A third byte that no other run has: beginning with another one in each process."""
    used = _ip("-o", "-4", "address", "show")
    first = os.getpid() % len(THIRDS)
    for third in chain(THIRDS[first:], THIRDS[:first]):
        if f" 198.18.{third}.{MACHINE}/" not in used:
            return third
    raise RuntimeError("other runs have all networks of 198.18.0.0/16: wait until one has ended")


class Switch:
    """Some networks, and a namespace for each node with a cable to each of them."""

    def __init__(self, networks: Sequence[str], nodes: Sequence[int]) -> None:
        """Makes all of it; `end` removes it."""
        assert len(networks) <= NETWORKS_AT_MOST
        self._networks, self._nodes = tuple(networks), tuple(nodes)
        self._name = f"soak{os.getpid()}"
        self._third = _free_third()
        with ExitStack() as undo:
            undo.callback(self.end)
            self._make()
            undo.pop_all()

    def machine(self, network: str) -> str:
        """An address of this machine."""
        return self._address(network, MACHINE)

    def node(self, node: int, network: str) -> str:
        """An address of a node."""
        return self._address(network, node)

    def within(self, node: int) -> list[str]:
        """Words before a command that runs as the node."""
        return ["ip", "netns", "exec", self._of(node)]

    @contextmanager
    def cut(self, node: int, network: str) -> Iterator[None]:
        """Nothing goes through the node's cable."""
        cable = self._cable(node, network)
        _ip("-n", self._name, "link", "set", cable, "nomaster")
        try:
            yield
        finally:
            _ip("-n", self._name, "link", "set", cable, "master", self._bridge(network))

    def end(self) -> None:
        """Removes all of it. The processes inside have ended."""
        for each in (*(self._of(node) for node in self._nodes), self._name):
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", each)

    def _make(self) -> None:
        _ip("netns", "add", self._name)
        for network in self._networks:
            bridge = self._bridge(network)
            _ip("-n", self._name, "link", "add", bridge, "type", "bridge")
            _ip("-n", self._name, "link", "set", bridge, "up")
            ours = f"s{os.getpid()}-{bridge}"
            self._plug_in(ours, f"m{bridge}", network, None, MACHINE)
        for node in self._nodes:
            _ip("netns", "add", self._of(node))
            _ip("-n", self._of(node), "link", "set", "lo", "up")
            for network in self._networks:
                end = f"to-{self._bridge(network)}"
                self._plug_in(end, self._cable(node, network), network, self._of(node), node)

    def _plug_in(self, end: str, port: str, network: str, space: str | None, host: int) -> None:
        """A cable from `end`, which is in `space` or here, to `port` of the switch."""
        there = [] if space is None else ["-n", space]
        _ip(*there, "link", "add", end, "type", "veth", "peer", "name", port, "netns", self._name)
        _ip(*there, "address", "add", f"{self._address(network, host)}/24", "dev", end)
        _ip(*there, "link", "set", end, "up")
        _ip("-n", self._name, "link", "set", port, "master", self._bridge(network), "up")

    def _address(self, network: str, host: int) -> str:
        """One of those that are for measurements (RFC 2544)."""
        return f"198.18.{self._third + self._networks.index(network)}.{host}"

    def _bridge(self, network: str) -> str:
        return f"net{self._networks.index(network)}"

    def _cable(self, node: int, network: str) -> str:
        return f"n{node}-{self._bridge(network)}"

    def _of(self, node: int) -> str:
        return f"{self._name}-{node}"


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
