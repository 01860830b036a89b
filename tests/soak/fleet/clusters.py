"""Three brokers that are one, as a run breaks them."""

from typing import Protocol

NODES = (1, 2, 3)


class Cluster(Protocol):
    """Brokers that a run breaks."""

    @property
    def bootstrap(self) -> str:
        """All of them, whether they run or not."""

    def start(self, node: int) -> None:
        """Returns when clients may ask it."""

    def kill(self, node: int) -> None:
        """kill -9."""

    def stop(self, node: int) -> None:
        """SIGTERM, and its end."""

    def lose_disk(self, node: int) -> None:
        """All that a node that does not run had on its disk."""

    def pid(self, node: int) -> int:
        """Its process."""
