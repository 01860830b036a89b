"""Report of a verification: counts of what agreed, and findings.

`damage` is of the log itself and cannot be made again; `wrong` is a file beside it that contradicts
the log, and that the broker rebuilds when it notices; a `note` is worth knowing and no fault.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

MAX_FINDINGS_OF_A_FILE = 20

Severity: TypeAlias = Literal["damage", "wrong", "note"]


class Finding(NamedTuple):
    """One thing that is not as it should be, in a file of the partition's directory."""

    severity: Severity
    file: str
    what: str


@dataclass(slots=True)
class Proved:
    """Counts of what was compared with the records and agreed."""

    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    offset_entries: int = 0
    time_entries_max: int = 0
    """Entries of time indexes that hold the offset of the largest time, as Kafka ships it."""
    time_entries_next: int = 0
    """Entries that hold the offset after it, as KIP-33 writes it."""
    zones: int = 0
    aborted_transactions: int = 0
    snapshots: int = 0
    epochs: int = 0


@dataclass(slots=True)
class PartitionReport:
    """The outcome for one partition. Offsets are -1 where there is no segment."""

    name: str
    path: str
    start_offset: int = -1
    end_offset: int = -1
    proved: Proved = field(default_factory=Proved)
    findings: list[Finding] = field(default_factory=list)
    unlisted: dict[str, int] = field(default_factory=dict)
    """By file: how many more findings of it are not in the list."""

    @property
    def verdict(self) -> str:
        """`damaged`, `wrong` or `sound`."""
        severities = {finding.severity for finding in self.findings}
        if "damage" in severities:
            return "damaged"
        return "wrong" if "wrong" in severities else "sound"

    def add(self, severity: Severity, file: str, what: str) -> None:
        """Note a finding; past a number of them for one file they are only counted."""
        if sum(each.file == file for each in self.findings) >= MAX_FINDINGS_OF_A_FILE:
            self.unlisted[file] = self.unlisted.get(file, 0) + 1
            return
        self.findings.append(Finding(severity, file, what))
