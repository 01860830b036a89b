"""scripts/prove: every proof, one table. Exit status 1 when a promise was found broken."""

import importlib
import sys
import time
import traceback
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from tests.prove import KEPT_FINDINGS, Outcome, Work

PROOFS: Final = {
    "archives": "runs of an archive die, time passes, options change: each offset is there once",
    "crashes": "the power goes at every call of a simulated life, recovery included",
    "failing_disks": "every call to the disk fails once; then a restart, a retry, a cut",
    "attacks": "strangers and users attack a broker with TLS, users and rights: others feel little",
    "bits": "every bit beside the logs flips once, the broker stopped and running",
    "fleet": "brokers die, stop, lose the catalog and its answers: nothing acknowledged goes",
    "fuzz": "decoders, walkers and files read at a start take any bytes (coverage-guided)",
    "interleavings": "threads change places between any two lines, by seed",
    "logins": "strangers send any token in any order, with certificates of any name: none gets in",
    "mutants": "a line of the code is made wrong, and a test must notice",
    "power_cuts": "real file systems lose their power under a broker with clients at work",
    "hostile": "whatever strangers send, then time and restarts: every API answers as before",
    "share": "queues whose members, locks, writes and logs fail: no record lost or finished twice",
    "tier": "logs in an object store that fails, against twins without; every call cut",
    "tier_faults": "a real store fails, or the broker dies, at every call: nothing lost, no orphan",
    "sanitizers": "walkers under address and undefined-behaviour sanitizers: no report",
}
"""Name of a proof (a module here) and what it searches for."""
ON_DEMAND: Final = {"sanitizers"}
"""Proofs that run only when they are named: they are slow."""


def outcome_of(name: str, work: Work) -> Outcome:
    """What the proof came to; one that breaks off is a finding, and the others still run."""
    try:
        proof = importlib.import_module(f"tests.prove.{name}")
        outcome: Outcome = proof.prove(work)
    except Exception:  # noqa: BLE001 - whatever it raises is what was found
        return Outcome(0, "points", findings=(f"broke off:\n{traceback.format_exc()}",))
    return outcome


@click.command(context_settings={"max_content_width": 100})
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--points", type=click.IntRange(1), help="Points for each proof; else its CI slice.")
@click.option("--seed", type=click.IntRange(0), default=0, help="First seed.")
@click.option("--processes", type=click.IntRange(1, 64), default=2, help="Worker processes.")
def main(names: tuple[str, ...], points: int | None, seed: int, processes: int) -> None:
    """Search for broken promises, seeded and replayable. NAME: only these proofs."""
    unknown = set(names) - set(PROOFS)
    if unknown:
        raise click.BadParameter(f"{', '.join(sorted(unknown))}: not one of {', '.join(PROOFS)}")
    work = Work(points, seed, processes)
    console = Console()
    table = Table("proof", "points", "of", "seeds", "findings", "seconds", "note")
    findings: list[str] = []
    for name in names or tuple(name for name in PROOFS if name not in ON_DEMAND):
        began = time.monotonic()
        outcome = outcome_of(name, work)
        findings += [f"{name}: {each}" for each in outcome.findings[:KEPT_FINDINGS]]
        told = (outcome.skipped and "skipped") or str(len(outcome.findings))
        seconds = f"{time.monotonic() - began:.1f}"
        note = outcome.skipped or outcome.note
        table.add_row(name, str(outcome.count), outcome.unit, outcome.seeds, told, seconds, note)
        if outcome.matrix and points is not None:
            matrix = Table(*outcome.matrix[0], title=name)
            for row in outcome.matrix[1:]:
                matrix.add_row(*row)
            console.print(matrix)
    console.print(table)
    for finding in findings:  # last, where whoever keeps only the end of an output has them
        console.print(finding, markup=False)
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
