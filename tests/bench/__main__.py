"""scripts/bench: measures our broker, and another one beside it in the same run.

The two are measured in turns, round by round and cell by cell, so that a bad minute of the machine
meets both; who goes first changes with the round. Each measurement has a topic of its own.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path

from rich.console import Console

from tests.bench import (
    choice_cells,
    cleaner_cells,
    client_cells,
    dirty_cells,
    fetch_cells,
    fleet_cells,
    fleet_cost_cells,
    fresh_memory,
    group_cells,
    in_flight_cells,
    latency_cells,
    lookup_cells,
    memory_cells,
    peers,
    produce_cells,
    rights_cells,
    scrape_cells,
    share_cells,
    single_cells,
    start_cells,
    time_cells,
    tls_cells,
    transaction_cells,
    waiting_cells,
)
from tests.bench.cell import FULL, QUICK, TINY, Cell, Scale
from tests.bench.peers import Peer
from tests.bench.results import CellResults, Verdict, as_json, verdict
from tests.bench.table import table
from tests.bench.tier import loss_cells, switched_cells, time_in_tier_cells
from tests.bench.warm_up import warm_up
from tests.bench.wire import BenchFailed
from tests.support.ended import ends_in_order

FAMILIES = (
    produce_cells,
    client_cells,
    single_cells,
    fetch_cells,
    group_cells,
    latency_cells,
    memory_cells,
    start_cells,
    dirty_cells,
    lookup_cells,
    time_cells,
    choice_cells,
    cleaner_cells,
    scrape_cells,
    share_cells,
    in_flight_cells,
    transaction_cells,
    rights_cells,
    tls_cells,
    waiting_cells,
    time_in_tier_cells,
    loss_cells,
    switched_cells,
    fleet_cells,
    fleet_cost_cells,
)
CELLS: tuple[Cell, ...] = tuple(cell for family in FAMILIES for cell in family.CELLS)
SCALES = {"full": FULL, "quick": QUICK, "tiny": TINY}
CACHE = Path(__file__).resolve().parents[2] / ".cache"
WARM_UP_MEGABYTES = 5_500
OURS, OTHER = "horolog", "kafka"
console = Console(width=None if sys.stdout.isatty() else 150)


def main() -> int:
    """0 when every promise that was judged is kept, 1 when one is missed or a cell failed."""
    options = parse()
    ends_in_order()
    if options.list:
        for cell in CELLS:
            print(cell.name)
        return 0
    chosen = [c for c in CELLS if any(fnmatch(c.name, p) for p in options.cells.split(","))]
    scale = SCALES[options.scale]
    options.data.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(dir=options.data, prefix="bench-")
        scratch = Path(stack.enter_context(made))
        both = list(start_peers(options, scratch, stack))
        for peer in both:
            warm(peer, options, scale)
        if scale.touches_memory:
            fresh_memory.touch_all()
        results = [measure(cell, both, scale, options.rounds) for cell in chosen]
    report(results, options)
    return int(any(bad(result) for result in results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--cells", default="*", help="patterns with commas, e.g. 'produce-raw-*'")
    parser.add_argument("--list", action="store_true", help="names of the cells, and nothing else")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--quick", dest="scale", action="store_const", const="quick")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--against", metavar="HOST:PORT", help="a Kafka that runs already")
    other.add_argument("--against-kafka", action="store_true", help="start a real Kafka")
    parser.add_argument("--against-pid", type=int, help="its process, for CPU figures")
    parser.add_argument("--only-other", action="store_true", help="leave our own broker out")
    parser.add_argument("--warm-up", type=int, metavar="MB", help="how much the other takes first")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        default=CACHE,
        help="where the brokers have their data, e.g. on a disk in memory: /dev/shm",
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def start_peers(options: argparse.Namespace, scratch: Path, stack: ExitStack) -> Iterator[Peer]:
    """Ours and, when asked for, the other one; those that we started stop with the stack."""
    if not options.only_other:
        ours = peers.horolog(scratch)
        stack.callback(ours.stop)
        yield ours
    if options.against_kafka:
        kafka = peers.kafka(scratch)
        stack.callback(kafka.stop)
        yield kafka
    elif options.against:
        yield peers.running_kafka(options.against, options.against_pid, scratch)


def warm(peer: Peer, options: argparse.Namespace, scale: Scale) -> None:
    megabytes = scale.megabytes // 2
    if peer.name == OTHER:
        megabytes = options.warm_up if options.warm_up is not None else WARM_UP_MEGABYTES
    progress(f"warming {peer.name} up with {megabytes} MB")
    warm_up(peer, megabytes, scale.seconds)


def measure(cell: Cell, both: list[Peer], scale: Scale, rounds: int) -> CellResults:
    """All rounds of one cell; a broker that fails one is left out of the others."""
    results = CellResults(cell)
    able = [
        peer
        for peer in both
        if (peer.can_start or not cell.starts_nodes) and (peer.name == OURS or not cell.only_ours)
    ]
    for round_number in range(min(rounds, cell.most_rounds)):
        for peer in able if round_number % 2 == 0 else able[::-1]:
            if peer.name in results.failures:
                continue
            os.sync()
            if scale.touches_memory and cell.fills_memory:
                fresh_memory.touch()
            try:
                results.add(peer.name, cell.measure(peer, scale))
            except (BenchFailed, OSError) as failure:
                results.failures[peer.name] = str(failure)
            progress(f"{cell.name} {peer.name} {last(results, peer)}")
    return results


def last(results: CellResults, peer: Peer) -> str:
    """The newest round in few words."""
    if failure := results.failures.get(peer.name):
        return f"failed: {failure}"
    figures = results.rounds[peer.name][-1]
    return " ".join(f"{name}={value:.4g}" for name, value in figures.items())


def progress(line: str) -> None:
    """What happens meanwhile goes where it does not spoil the table."""
    print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)


def bad(result: CellResults) -> bool:
    """Whether a promise was missed or a measurement went wrong."""
    missed = any(verdict(result, f, OURS, OTHER) is Verdict.MISSED for f in result.cell.figures)
    return missed or bool(result.failures)


def report(results: list[CellResults], options: argparse.Namespace) -> None:
    """The table, what went wrong, and the file for machines."""
    console.print(table(results, OURS, OTHER))
    for result in results:
        for peer, failure in result.failures.items():
            console.print(f"{result.cell.name}: {peer} failed: {failure}", style="red")
    if options.json:
        machine = {"cpus": os.cpu_count(), "system": platform.platform()}
        made = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": {**machine, "python": platform.python_version()},
            "scale": options.scale,
            "cells": as_json(results, OURS, OTHER),
        }
        options.json.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
