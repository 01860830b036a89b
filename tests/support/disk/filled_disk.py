"""A simulated disk that others fill as well."""

from storage.errors import DiskError
from tests.support.disk.simdisk import SimFileSystem


class FilledDisk(SimFileSystem):
    """`by_others` bytes of it are taken; while `is_gone` nobody can say how many are free."""

    def __init__(self, capacity_bytes: int) -> None:
        super().__init__(capacity_bytes=capacity_bytes)
        self.by_others = 0
        self.is_gone = False

    def free_bytes(self, path: str) -> int:
        if self.is_gone:
            raise DiskError(path, "statvfs", "Stale file handle")
        return super().free_bytes(path) - self.by_others

    def leave(self, free_bytes: int) -> None:
        """Others take all but that."""
        self.by_others = 0
        self.by_others = self.free_bytes("/") - free_bytes
