"""A file system that may be read and never written: every other call is a failure of the test."""

from storage.env import DirEntry, File, FileSystem


class WrittenTo(AssertionError):  # noqa: N818 - what happened
    """Raised when code tries to change a read-only file system."""


class ReadOnlyFileSystem:
    """Contents of `inner`, for reading."""

    def __init__(self, inner: FileSystem) -> None:
        self._inner = inner

    def open(self, path: str, *, create: bool = False, write: bool = True) -> File:
        if create or write:
            raise WrittenTo(f"{path} was opened for writing")
        return self._inner.open(path, write=False)

    def exists(self, path: str) -> bool:
        return self._inner.exists(path)

    def list_dir(self, path: str) -> list[DirEntry]:
        return self._inner.list_dir(path)

    def read_bytes(self, path: str) -> bytes:
        return self._inner.read_bytes(path)

    def read_text(self, path: str) -> str:
        return self._inner.read_text(path)

    def __getattr__(self, name: str) -> object:
        raise WrittenTo(f"{name} was called")
