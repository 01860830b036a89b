"""The file `horolog-remote`: what a partition's directory knows of the store.

It repeats the newest manifest, so that a start needs no store, and has the local start offset:
local segments wholly before it are about to go, or gone. Written new, synced, renamed (as every
file that vouches for something), after the manifest is in the store and before a segment leaves
the directory. A start that finds it damaged is refused: nothing else says where the log begins.
"""

import json
from typing import NamedTuple

from protocol.checksum import crc32c
from storage.env import FileSystem
from storage.errors import CorruptCheckpoint
from storage.files.layout import REMOTE_FILE
from storage.recovery.loading import LoadHints
from storage.tier.manifests.manifest import Manifest, RowTexts, apply, render_full


class LocalState(NamedTuple):
    """The content of the file."""

    manifest: Manifest
    local_start_offset: int = 0
    """First offset of the local part; all before it is in the store."""

    def added_to(self, known: LoadHints) -> LoadHints:
        """The hints of the checkpoints, and what this file says."""
        manifest = self.manifest
        return known._replace(
            start_offset=max(known.start_offset, manifest.log_start_offset),
            remote_end=manifest.end_offset,
            remote_arrival_before=manifest.last_arrival_before,
            local_start_offset=self.local_start_offset,
        )


def save(fs: FileSystem, directory: str, state: LocalState, texts: RowTexts | None = None) -> None:
    """Makes it durable. `texts`: those of the state before. DiskError: the old one stays."""
    manifest = render_full(state.manifest, texts)
    start = state.local_start_offset
    head = json.dumps({"local_start_offset": start, "crc": _crc_of(start, manifest)})
    fs.write_atomically(f"{directory}/{REMOTE_FILE}", head.encode() + b"\n" + manifest + b"\n")


def load(fs: FileSystem, directory: str) -> LocalState | None:
    """Read what is known of the store; None when the partition has nothing there.

    CorruptCheckpoint, NewerFormat, DiskError.
    """
    path = f"{directory}/{REMOTE_FILE}"
    if not fs.exists(path):
        return None
    head, _, manifest = fs.read_bytes(path).partition(b"\n")
    try:
        facts = json.loads(head)
        local_start, crc = int(facts["local_start_offset"]), int(facts["crc"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptCheckpoint(path, f"its first line is none of ours: {error!r}") from error
    manifest = manifest.removesuffix(b"\n")
    state = apply(path, None, manifest)
    if state is None or _crc_of(local_start, manifest) != crc:
        raise CorruptCheckpoint(path, "its checksum is not that of its content")
    return LocalState(state, local_start)


def _crc_of(local_start: int, manifest: bytes) -> int:
    return crc32c(manifest, crc32c(b"%d" % local_start))
