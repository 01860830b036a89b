"""Attacks on a broker with TLS, users and rights: what they cost it, and what others feel of them.

A point is a second of attack. The table has, for each, how often it struck, the CPU that the broker
spent on a strike, by how much its memory grew at most, and how long requests and log-ins of a
bystander took meanwhile. Attackers, bystander and broker share the cores.
"""

import tempfile
from pathlib import Path

from tests.prove import Outcome, Work
from tests.support.attacks import on_http, on_log_ins, on_rights, on_tls, on_tokens
from tests.support.attacks.siege import Felt, Siege

ATTACKS = (
    *on_tls.ATTACKS,
    *on_log_ins.ATTACKS,
    *on_tokens.ATTACKS,
    *on_rights.ATTACKS,
    *on_http.ATTACKS,
)
SLICE_SECONDS = 14
TITLES = (
    "attack", "strikes", "CPU us each", "memory +MiB", "p50 ms", "p99 ms", "worst ms",
    "worst log-in ms",
)  # fmt: skip


def prove(work: Work) -> Outcome:
    """Every attack, for an equal share of the seconds."""
    seconds = work.wanted(SLICE_SECONDS)
    with tempfile.TemporaryDirectory() as folder, Siege(Path(folder)) as siege:
        felt = [siege.calm(1)]
        felt += [siege.endure(each, seconds / len(ATTACKS)) for each in ATTACKS]
        findings = tuple(found for each in felt for found in each.findings) + siege.let_go()
    worst = max(felt, key=lambda each: each.worst)
    note = f"{len(ATTACKS)} attacks; others waited {worst.worst:.0f} ms at most ({worst.name})"
    return Outcome(seconds, "seconds", "", findings, note=note, matrix=(TITLES, *map(_row, felt)))


def _row(felt: Felt) -> tuple[str, ...]:
    figures = (felt.growth_mib, felt.median, felt.p99, felt.worst, felt.worst_log_in)
    shown = (f"{each:.1f}" for each in figures)
    return felt.name, str(felt.strikes), f"{felt.cpu_us:.0f}", *shown
