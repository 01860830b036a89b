"""Progress of a replay, in files: for each target by itself, and for one range of records alone.

Below the folder that `--state` names:

    to-<topic id of the target>/<topic that is read>/range.json     what is copied
                                                     <N>.json       how far partition N is

A target that was created again has another id, and is written from the start; so is the copy of a
topic that was created again. Another range, or other partitions, for a known target is refused:
records before the noted offset that were not wanted then would be left out silently.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.errors import BadOption, DataLost
from pipeline.sources.partition_view import PartitionView
from storage.posix import real_env


class WantedRange(NamedTuple):
    """Records to copy, and their partitions. Times in ms; None: open."""

    from_ms: int | None
    until_ms: int | None
    last_ms: int | None
    """Instead of `from_ms`: counted from the moment at which the replay began."""
    same_partitions: bool

    def __str__(self) -> str:
        """As it is asked for on the command line."""
        given = {"--from-ms": self.from_ms, "--until-ms": self.until_ms, "--last": self.last_ms}
        words = [f"{name} {value}" for name, value in given.items() if value is not None]
        words[-1:] = [f"{each}ms" if each.startswith("--last") else each for each in words[-1:]]
        return " ".join([*words, *["--same-partitions"] * self.same_partitions]) or "everything"


def place_of(state: str, bootstrap: str, to_topic: str, to_topic_id: str, topic: str) -> str:
    """The folder for one target and one topic that is read; empty when nothing is remembered."""
    if not state:
        return ""
    known = to_topic_id
    if not known:  # a broker of before topic ids
        known = hashlib.blake2b(f"{bootstrap}/{to_topic}".encode(), digest_size=16).hexdigest()
    return str(Path(state, f"to-{known}", topic))


def begun(place: str, wanted: WantedRange, now_ms: int) -> int | None:
    """The time from which on records are wanted, as the first run had it; notes it if this is it.

    BadOption when that one wanted something else, or left notes that say nothing of it.
    """
    low = wanted.from_ms if wanted.last_ms is None else now_ms - wanted.last_ms
    if not place:
        return low
    folder = Path(place)
    _refuse_older(folder)
    path = folder / "range.json"
    noted = _read(path, lambda found: (WantedRange(**found["wanted"]), found["low_ms"]))
    if noted is None:
        _write(path, {"wanted": wanted._asdict(), "low_ms": low})
        return low
    if noted[0] != wanted:
        raise BadOption(
            f"--state: the replay in {folder} was begun with {noted[0]}, and this one asks for "
            f"{wanted}: go on with that, or name another folder"
        )
    begin: int | None = noted[1]
    return begin


class Notes:
    """Progress of a partition; a topic created again begins again."""

    def __init__(self, place: str, view: PartitionView) -> None:
        """Reads what an earlier run has noted. BadOption when it cannot be read."""
        self._view = view
        self._path = Path(place, f"{view.partition}.json") if place else None
        self.following, self.records = view.start_offset, 0
        if self._path is None:
            return
        noted = _read(self._path, lambda each: (each["topic_id"], each["next"], each["records"]))
        if noted is not None and noted[0] == view.topic_id:
            self.following, self.records = noted[1:]

    def refuse_loss(self) -> None:
        """DataLost where the log does not have what comes next."""
        view, at = self._view, self.following
        if at < view.start_offset:
            raise DataLost(
                f"{view}: offsets from {at} to before {view.start_offset} went before they were "
                "copied; --allow-loss goes on from there"
            )
        if view.leader and at > view.end_offset:
            raise DataLost(
                f"{view} was copied up to {at} and ends at {view.end_offset} now: it has lost its "
                "end, and what was written since would be left out"
            )

    def keep(self, following: int, records: int) -> None:
        """Note that all before the offset is written; durable when it returns."""
        if self._path is not None:
            _write(
                self._path,
                {"topic_id": self._view.topic_id, "next": following, "records": records},
            )


def _refuse_older(folder: Path) -> None:
    """Refuses older notes, which are in the folder itself, as `topic-N.json`."""
    state, topic = folder.parents[1], folder.name
    for path in sorted(state.glob("*.json")):
        name, _, number = path.stem.rpartition("-")
        if name == topic and number.isdecimal():
            raise BadOption(
                f"--state: {path} is of an earlier version and does not say what was written "
                "where: name another folder"
            )


def _read(path: Path, take: Callable[[dict[str, Any]], Any]) -> Any:
    try:
        return take(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadOption(f"--state: {path} cannot be read: {error}") from error


def _write(path: Path, noted: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    real_env().fs.write_atomically(str(path), json.dumps(noted).encode())
