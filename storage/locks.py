"""The locks of storage. Taken for moments, and by few: most of a log belongs to one writer.

- `Lock()` of a `Log`: its gate, taken while state changes and is published; another while its files
are synced, so that none is once it is closed. - `Lock()` of
`TrustedIndexes`: while a segment gets other indexes, or a writer who keeps them. - `Lock()` of
`LogCheckpoints`: while a checkpoint file is written. - `Lock()` of a `TieredLog`: while its file in
the log's directory is written; of an `ObjectCache`: while files come and go; of a `RemoteObject`:
while bytes come; of a `DirectoryStore`: while a file is made; of `RemovedSegments`: while one is
taken out; of a `LogManager`, of `RemoteLogs`: while their `logs` are replaced. - `ONCE`: for what
is made when it is first asked for, on whichever thread that is: one wins. Taken for an assignment
only, never while anything is read or made.
"""

from threading import Lock

__all__ = ["ONCE", "Lock"]

ONCE = Lock()
