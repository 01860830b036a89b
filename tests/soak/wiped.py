"""scripts/soak wiped: the time from a lost data directory to the first answer, and all compared.

A real broker with topics of several kinds, and a real store that speaks S3's protocol. The data
directory is wiped and restored: out of a tier, out of back-ups in a bucket (read from there, and
downloaded) and in a directory. Printed are the seconds that the restore took, and those from the
start of the broker's process to its first answer with records, beside those of a start on the whole
directory after a clean stop. Everything that clients can learn is compared.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.support.backup.wiped_story import VALUE_BYTES, Timings, WipedStory, measured
from tests.support.ended import ends_in_order
from tests.support.tier.s3_server import S3Server, seaweedfs

CACHE = Path(__file__).resolve().parents[2] / ".cache"
KINDS = ("tier", "back-up in a bucket", "the same, downloaded", "back-up in a directory")
COLUMNS = ("out of", "restore, s", "start on the whole, s", "start on the restored, s", "ratio")
AT_ONCE = 20_000


def main() -> int:
    """0 when everything is as it was."""
    options = parse()
    ends_in_order()
    CACHE.mkdir(exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else 110)
    table = Table(*COLUMNS)
    is_equal = True
    records = round(options.mib * (1 << 20) / VALUE_BYTES)
    with seaweedfs() as server:
        for kind in KINDS:
            with tempfile.TemporaryDirectory(dir=CACHE, prefix="soak-wiped-") as folder:
                times, is_same = run(Path(folder), server, kind, records)
            table.add_row(
                kind, f"{times.restore:.2f}", f"{times.full_start:.2f}",
                f"{times.restored_start:.2f}", f"{times.ratio:.2f}",
            )  # fmt: skip
            if not is_same:
                is_equal = False
                console.print(f"{kind}: the restored broker answers otherwise")
    console.print(table)
    console.print("everything is as it was" if is_equal else "NOT everything is as it was")
    return 0 if is_equal else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/soak wiped", description=__doc__)
    parser.add_argument("--mib", type=float, default=200, help="of values of each topic")
    return parser.parse_args()


def run(folder: Path, server: S3Server, kind: str, records: int) -> tuple[Timings, bool]:
    """One loss; the times, and whether the views of before and after are equal."""
    has_tier = kind == "tier"
    story = WipedStory(folder, server, has_tier=has_tier)
    with story.start() as node:
        story.make_topics(node)
        for first in range(0, records, AT_ONCE):
            story.write(node, first, min(AT_ONCE, records - first))
        if has_tier:
            story.wait_until_copied(node)
    with story.at_rest() as node:
        if has_tier:
            story.wait_until_copied(node)
        before = story.view(node)
    place = place_of(folder, server, kind, story)
    if not has_tier:
        story.back_up(place)
    is_downloaded = kind in KINDS[2:]
    times, node = measured(story, place, is_downloaded=is_downloaded)
    with node:
        return times, story.view(node) == before


def place_of(folder: Path, server: S3Server, kind: str, story: WipedStory) -> str:
    """The tier, or where the back-up goes."""
    if kind == "tier":
        return story.tier_url
    if kind == KINDS[3]:
        return str(folder / "backup")
    return server.url(f"{folder.name}-backup")


if __name__ == "__main__":
    sys.exit(main())
