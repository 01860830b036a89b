"""Settings of Kafka that are taken, kept and shown here, although they steer nothing.

Kafka's tools and people's scripts set them on every cluster: pools of threads, throttles of
replication, elections, sizes of files to come. A broker that stands alone has none of these, so a
refusal would break the script and help nobody. The bounds are Kafka's. A setting that promises what
does not happen is not here but in `known.py`, and is refused.
"""

import re
from dataclasses import dataclass

from config.declare import described_key
from config.key import ConfigKey
from config.quantities import LONG_MAX
from config.values import Flag, KafkaType, count, size

_ALONE = "One node has no replicas."
_NO_POOL = "There is no such pool: the broker has an event loop, and lanes for its disks."


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """A list of `partition:broker`, or `*` for all replicas of a topic; empty for none."""

    @property
    def kafka_type(self) -> KafkaType:
        """LIST: APPEND and SUBTRACT work on it."""
        return KafkaType.LIST

    def parse(self, text: str) -> tuple[str, ...]:
        """ValueError for what is neither."""
        words = tuple(word.strip() for word in text.split(",") if word.strip())
        if words != ("*",) and not all(re.fullmatch(r"[0-9]+:[0-9]+", word) for word in words):
            raise ValueError(f"{text!r} is not {self.bounds()}")
        return words

    def canonical(self, text: str) -> str:
        """Without blanks."""
        return ",".join(self.parse(text))

    def bounds(self) -> str:
        """For the documentation."""
        return "* or a list of partition:broker"


KEPT_OF_TOPICS: tuple[ConfigKey, ...] = (
    described_key(
        "unclean.leader.election.enable",
        Flag(),
        False,
        on_topic=True,
        on_broker=True,
        doc=_ALONE,
    ),
    described_key(
        "preallocate",
        Flag(),
        False,
        on_topic=True,
        on_broker=True,
        broker="log.preallocate",
        doc="Files have the size of what is in them: nothing is allocated before it is written.",
    ),
    *(
        described_key(
            f"{side}.replication.throttled.replicas",
            ThrottledReplicas(),
            (),
            on_topic=True,
            on_broker=False,
            doc=_ALONE,
        )
        for side in ("leader", "follower")
    ),
)
KEPT_OF_THE_BROKER: tuple[ConfigKey, ...] = (
    *(
        described_key(name, count(1), threads, on_topic=False, on_broker=True, doc=_NO_POOL)
        for name, threads in (
            ("background.threads", 10),
            ("num.io.threads", 8),
            ("num.network.threads", 3),
            ("num.recovery.threads.per.data.dir", 2),
            ("num.replica.fetchers", 1),
        )
    ),
    *(
        described_key(name, size(0, LONG_MAX), LONG_MAX, on_topic=False, on_broker=True, doc=_ALONE)
        for name in (
            "follower.replication.throttled.rate",
            "leader.replication.throttled.rate",
            "replica.alter.log.dirs.io.max.bytes.per.second",
        )
    ),
)
_NAMES = frozenset(
    spelling.name
    for key in (*KEPT_OF_TOPICS, *KEPT_OF_THE_BROKER)
    for spelling in (*key.on_topic, *key.on_broker)
)


def is_kept(name: str) -> bool:
    """True for a setting that is kept and shown, and has no effect."""
    return name in _NAMES
