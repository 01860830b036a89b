"""Kaskade's admin screen on a terminal that nobody sees: its table of topics, as JSON.

usage, with an interpreter that has kaskade: python kaskade_screen.py HOST:PORT TOPIC
"""

import asyncio
import json
import sys

from kaskade.admin import KaskadeAdmin
from textual.widgets import DataTable

SIZE = (180, 50)
LOOKS = 150
BETWEEN_SECONDS = 0.2


async def show(bootstrap: str, topic: str) -> None:
    """Wait for the row of a topic that has its lag, which comes last, and print it."""
    app = KaskadeAdmin({"bootstrap.servers": bootstrap})
    row: dict[str, str] = {}
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(LOOKS):
            await pilot.pause(BETWEEN_SECONDS)
            row = row_of(app, topic)
            if any(character.isdigit() for character in row.get("Lag", "")):
                break
    print(json.dumps(row))


def row_of(app: KaskadeAdmin, topic: str) -> dict[str, str]:
    """What stands under each heading, in the row of that name."""
    for table in app.screen.query(DataTable):
        names = [str(column.label) for column in table.ordered_columns]
        for key in table.rows:
            cells = [str(cell) for cell in table.get_row(key)]
            if topic in cells:
                return dict(zip(names, cells, strict=True))
    return {}


if __name__ == "__main__":
    asyncio.run(show(*sys.argv[1:]))
