"""WriteCommits that a test answers."""

from broker.fleet.host import OwnedLog
from broker.partitions.commit import Done


class HeldCommits:
    """The `WriteCommits` of an incarnation; nothing is committed before the test says so."""

    def __init__(self) -> None:
        self.requests: list[tuple[OwnedLog, int, Done]] = []
        self.starts: list[tuple[OwnedLog, Done]] = []
        self.told: list[OwnedLog] = []

    def request(self, log: OwnedLog, offset: int, done: Done) -> None:
        self.requests.append((log, offset, done))

    def appended(self, log: OwnedLog) -> None:
        self.told.append(log)

    def start_moved(self, log: OwnedLog, done: Done) -> None:
        self.starts.append((log, done))
