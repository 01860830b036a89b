"""Answers of /api/timeline as a broker of any size would give them: for the page alone, unserved.

They have the form of the real ones; `test_timeline_api.py` holds the real ones to it.
"""

from typing import Any

COLUMNS = [
    "base_offset", "segments", "size_bytes", "first_record_ms", "last_record_ms",
    "first_arrival_ms", "last_arrival_ms", "state", "place",
]  # fmt: skip
PLACES = ["local", "store", "both"]
STATES = ["closed", "active", "goes", "overdue", "compacted"]
NOW = 1_780_000_000_000
MINUTE = 60_000


def instant(ms: int) -> dict[str, Any]:
    return {"ms": ms, "iso": None}


def partition(topic: str, index: int, segments: int, bars: int) -> dict[str, Any]:
    """A partition of `segments` segments of ten minutes each, the last one active."""
    begin = NOW - segments * 10 * MINUTE
    told = []
    for number in range(segments if bars else 0):
        first = begin + number * 10 * MINUTE
        last = first + 9 * MINUTE
        state = 1 if number == segments - 1 else 2 if number < 3 else 0
        told.append(
            [number * 1000, 1, 700_000 + index * 1000, first, last, first + 50, last + 50, state, 0]
        )
    return {
        "topic": topic, "partition": index, "log_start_offset": 0,
        "high_watermark": segments * 1000, "log_end_offset": segments * 1000,
        "size_bytes": segments * 700_000, "segments": segments, "segment_bytes": 2**20,
        "store": None,
        "lag": None, "dirty": [], "oldest_record": instant(begin), "newest_record": instant(NOW),
        "last_arrival": instant(NOW), "compaction": None,
        "retention": {
            "clock": "earlier", "horizon": instant(begin + 30 * MINUTE), "leaving_segments": 3,
            "overdue_segments": 0, "overdue_ms": 0, "stays": 3000,
            "stays_because": "not old enough for retention.ms",
            "stays_until": instant(NOW + 10 * MINUTE),
        },
        "upcoming": [
            {
                "what": "removal", "at": instant(NOW + MINUTE), "because": "older",
                "base_offset": 0, "segments": 3, "size_bytes": 2_100_000,
            }
        ],
        "bars": told, "is_still_reading": False, "fault": None,
    }  # fmt: skip


def timeline(
    partitions: int, segments: int, asked: dict[str, str], topic: str = "big"
) -> dict[str, Any]:
    """The answer to a question about one topic of so many partitions."""
    after = int(asked.get("after", ":-1").rpartition(":")[2])
    bars, limit = int(asked.get("bars", "0")), int(asked.get("limit", "200"))
    page = [
        partition(topic, index, segments, bars)
        for index in range(after + 1, min(partitions, after + 1 + limit))
    ]
    last = page[-1]["partition"] if page else partitions - 1
    return {
        "now": instant(NOW), "hold": None, "retention_round": instant(NOW + MINUTE),
        "columns": COLUMNS, "states": STATES, "places": PLACES, "partitions": page,
        "partitions_in_all": partitions,
        "next": f"{topic}:{last}" if last < partitions - 1 else None,
    }  # fmt: skip


def queues(group: str, *topics: str) -> dict[str, Any]:
    """The answer of /api/timeline/queues, of one share group; each topic's records are older by a
    minute than those of the next.
    """
    ages = [60 * (len(topics) - index) for index in range(len(topics))]
    return {
        "now": instant(NOW), "queues_in_all": len(topics) + 1,
        "queues": [
            {
                "group": group, "behind": 1200, "topic": topic, "partition": 0, "start": 7000,
                "high_watermark": 8200, "oldest_record_seconds": None,
                "oldest_record_is_exact": True,
                "oldest_arrival_seconds": age, "in_memory": True, "end": 7100,
                "records": {
                    "available": 0, "acquired": 100, "acknowledged": 1, "archived": 0,
                    "lettering": 0,
                },
                "waiting": 40, "next_due": instant(NOW + MINUTE),
                "letters": {"rejected": 3, "limit": 0},
            }
            for topic, age in zip(topics, ages, strict=True)
        ],
    }  # fmt: skip


def nodes(address: str) -> dict[str, object]:
    """An answer of /api/fleet: one clock is ahead, one a little behind, one node is gone."""

    def node(number: int, state: str, ahead_ms: int | None) -> dict[str, object]:
        return {
            "node": number, "address": address, "version": "1.0", "life": 3, "state": state,
            "renewed": {"ms": 1_700_000_000_000, "iso": "2023-11-14T22:13:20.000Z"}, "shards": 21,
            "partitions": 7, "bytes_per_second": 2_000_000, "clock_ahead_ms": ahead_ms,
        }  # fmt: skip

    return {
        "now": {"ms": 1_700_000_000_500, "iso": "2023-11-14T22:13:20.500Z"}, "node": 2,
        "nodes": [node(1, "alive", 90_000), node(2, "draining", -12), node(3, "gone", None)],
        "shards": 64, "shards_without_owner": 3,
    }  # fmt: skip
