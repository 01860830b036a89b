"""The scenes: questions in order, asked of a new broker; later ones meet what earlier ones did."""

from collections.abc import Mapping, Sequence

from tests.support.questions.of_features import raised
from tests.support.questions.of_readers import (
    THAT_SESSION,
    UNKNOWN,
    append,
    epoch_end,
    look_up,
    named,
    offset_of,
    read,
)
from tests.support.questions.of_settings import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    LOGGER,
    NODE,
    TOPIC,
    create,
    list_resources,
    replace,
    show,
    step,
    steps,
)
from tests.support.questions.question import Question

UNCLEAN = "unclean.leader.election.enable"
LEADERS, FOLLOWERS = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
RATE = "leader.replication.throttled.rate"
MOVES = "replica.alter.log.dirs.io.max.bytes.per.second"
NO_POOLS = "pools of threads that are not there may have any size"
DOWN = "message.downconversion.enable"
CONVERTS = "old clients are still served, so that the setting of Kafka 3 has a meaning"
TYPING_ERRORS = "a name that nobody knows is refused: it is a slip of the pen"
POOLS = {
    "background.threads": "9",
    "num.network.threads": "4",
    "num.recovery.threads.per.data.dir": "3",
    "num.replica.fetchers": "2",
}
"""With sizes that Kafka takes: not more than twice, nor less than half of what there is."""


def _of_the_broker(name: str) -> list[Question]:
    asked = steps(BROKER, name, "num.io.threads", "3", differs=NO_POOLS)  # as Kafka starts with 8
    asked += steps(BROKER, name, "num.io.threads", "16", "0", "x", own_words=True)
    asked += steps(BROKER, name, "num.io.threads", "8", None, None)
    for pool, size in POOLS.items():
        asked += steps(BROKER, name, pool, "0", size, None, own_words=True)
    asked += steps(BROKER, name, UNCLEAN, "true", "false", "maybe", own_words=True)
    for rate in (RATE, RATE.replace("leader", "follower"), MOVES):
        asked += steps(BROKER, name, rate, "1000", "-1", "0", None, None, own_words=True)
    for read_at_start in ("node.id", "log.dirs", "num.partitions", "queued.max.requests"):
        asked += steps(BROKER, name, read_at_start, "2", None, own_words=True)
    asked.append(step(BROKER, name, "no.such.key", "1", differs=TYPING_ERRORS))
    asked += steps(BROKER, name, "no.such.key", None, None)
    return asked


SETTINGS = (
    create("t"),
    *steps(TOPIC, "t", "retention.ms", None, None),
    *steps(TOPIC, "t", "no.such.key", None, "1", own_words=True),
    *steps(TOPIC, "t", UNCLEAN, "true", "maybe", "false", own_words=True),
    *steps(TOPIC, "t", LEADERS, "*", "0:1", "bad", "", "none", "0:1,1:1", own_words=True),
    *steps(TOPIC, "t", LEADERS, "+0:1"),
    *steps(TOPIC, "t", FOLLOWERS, "*,0:1", "*", own_words=True),
    *steps(TOPIC, "t", "preallocate", "true", "maybe", own_words=True),
    *steps(BROKER, NODE, "log.preallocate", "true", "maybe", own_words=True),
    step(TOPIC, "t", DOWN, "false", differs=CONVERTS),
    step(TOPIC, "t", DOWN, "maybe", own_words=True),
    *steps(TOPIC, "t", "remote.storage.enable", "false"),
    *steps(TOPIC, "t", "message.format.version", "3.0", None, own_words=True),
    create("u", unclean_leader_election_enable="true", follower_replication_throttled_replicas=""),
    create("v", unclean_leader_election_enable="1"),
    show(TOPIC, "t", UNCLEAN, LEADERS, FOLLOWERS, "remote.storage.enable", "preallocate"),
    show(TOPIC, "u", UNCLEAN, LEADERS, FOLLOWERS, "remote.storage.enable", "preallocate"),
    show(BROKER, NODE, "log.preallocate"),
    step(TOPIC, "t", "preallocate", None),
    step(BROKER, NODE, "log.preallocate", None),
    show(TOPIC, "t", "preallocate"),
    *_of_the_broker(NODE),
    *_of_the_broker(""),
    step(BROKER, "2", "num.io.threads", "8", own_words=True),
    *steps(BROKER, NODE, "num.io.threads", "9"),
    *steps(BROKER, "", "num.network.threads", "4"),
    show(BROKER, NODE, "num.io.threads", UNCLEAN, *POOLS),
    show(BROKER, "", "num.io.threads", UNCLEAN, *POOLS),
)

READERS = (
    create("t"),
    create("u"),
    append("t", b"a", b"b"),
    append("t", b"c"),
    *(epoch_end("t", 0, epoch, now) for now in (-2, -1, 0, 1) for epoch in (-2, -1, 0, 1)),
    *(epoch_end("t", 7, 0, now) for now in (-1, 1)),
    *(epoch_end("none", 0, 0, now) for now in (-1, 1)),
    *(epoch_end("u", 0, epoch, -1) for epoch in (-2, -1, 0, 3)),
    *(epoch_end("t", 0, epoch, -1, 2) for epoch in (-2, -1, 0)),
    *(offset_of("t", at, now) for at in (-2, -1, 0) for now in (-2, -1, 0, 1)),
    *(read(("t", 0, 0), epochs=(now, -1)) for now in (-2, -1, 0, 1)),
    *(read(("t", 0, 3), epochs=(-1, last)) for last in (-2, -1, 0, 1)),
    read(("t", 0, 9)),
    read(("t", 0, 9), epochs=(-1, 0)),
    read(("t", 0, -1)),
    read(("u", 0, 0), epochs=(-1, 0)),
    read(("t", 7, 0)),
    read(("none", 0, 0)),
)
SESSIONS = (
    create("t"),
    append("t", b"a"),
    read(session=(0, 0)),
    read(session=(THAT_SESSION, 1)),
    read(session=(THAT_SESSION, 2)),
    read(session=(0, 0)),
    read(("t", 0, 0), session=(THAT_SESSION, 1)),
    read(session=(THAT_SESSION, 2)),
    read(session=(THAT_SESSION, 3), forget=[("t", 0)]),
    read(session=(THAT_SESSION, 4)),
    read(session=(12_345, 0)),
    read(session=(THAT_SESSION, 7)),
    read(session=(THAT_SESSION, -1)),
    read(session=(THAT_SESSION, 1)),
    read(session=(0, 5)),
    read(session=(12_345, -1)),
    read(),
    *(
        each
        for version in (7, 12, 13)
        for each in (
            read(("t", 0, 0), session=(0, 0), version=version),
            read(session=(THAT_SESSION, 1), forget=[("t", 0)], version=version),
            read(session=(THAT_SESSION, 2), version=version),
            read(("none", 0, 0), session=(0, 0), version=version),
            read(session=(THAT_SESSION, 1), version=version),
        )
    ),
    read(session=(THAT_SESSION, 2), version=12),
    read(session=(0, 0), version=13),
    read(("t", 0, 0), session=(THAT_SESSION, 1), version=12),
)
METADATA = (
    create("t"),
    create("u"),
    create("a.b"),
    look_up(named("t")),
    *(
        each
        for version in (10, 11, 12, 13)
        for each in (
            look_up(("t", "t"), version=version),
            look_up(("t", "u"), version=version),
            look_up(("t", UNKNOWN), version=version),
            look_up((None, "t"), version=version),
            look_up((None, UNKNOWN), version=version),
            look_up(named(None), version=version),
            look_up(named(""), version=version),
            look_up(("none", "t"), version=version),
            look_up(("", "t"), version=version),
            look_up(named("t"), named(None), version=version),
            look_up(named("t"), (None, "u"), named("none"), version=version),
            look_up((None, "t"), named(None), version=version),
            look_up(named("bad name"), version=version),
        )
    ),
    *(look_up(named("a_b"), version=version, create=True) for version in (4, 9, 12)),
    look_up(named("a_b")),
    look_up(named("bad name"), create=True),
    look_up(named("__consumer_offsets"), named("__share_group_state")),
    look_up(named("x"), create=True, differs="a topic that is made at once is in the same answer"),
)
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
MATCH = ("client_id=a,client_software_name=b.*", "", " client_id = a ", "client_id=a,client_id=b")
NO_MATCH = ("bad=a", "client_id", "client_id=[", "client_id=a=b", "=a")
LISTS = "metrics and match are lists, which take APPEND and SUBTRACT"
RESOURCES = (
    show(GROUP, "g", SESSION, HEARTBEAT),
    *steps(GROUP, "g", SESSION, "1", "44999", "45000", "60001", "60000", "x", own_words=True),
    step(GROUP, "g", SESSION, "+1", own_words=True),
    *steps(GROUP, "g", HEARTBEAT, "4999", "5000", "15001", "15000", "", own_words=True),
    *steps(GROUP, "g", "no.such", "1", None),
    show(GROUP, "g", SESSION, HEARTBEAT),
    show(GROUP, "other", SESSION, HEARTBEAT),
    *steps(GROUP, "g", SESSION, None, None),
    *(step(GROUP, "", HEARTBEAT, value, own_words=True) for value in ("7000", None)),
    show(GROUP, "", SESSION),
    show(GROUP, "g", SESSION, HEARTBEAT),
    replace(GROUP, "h", consumer_heartbeat_interval_ms="7000"),
    replace(GROUP, "h", consumer_heartbeat_interval_ms="1"),
    replace(GROUP, "", consumer_heartbeat_interval_ms="7000"),
    show(GROUP, "h", SESSION, HEARTBEAT),
    show(CLIENT_METRICS, "cm"),
    *steps(CLIENT_METRICS, "cm", "interval.ms", "7000", "99", "100", "3600001", "3600000"),
    *steps(CLIENT_METRICS, "cm", "interval.ms", "x", "-1", "+1", own_words=True),
    *steps(CLIENT_METRICS, "cm", "metrics", "a.b,c", "*", "", "a.b"),
    step(CLIENT_METRICS, "cm", "metrics", "+c", differs=LISTS),
    *steps(CLIENT_METRICS, "cm", "match", *NO_MATCH, *MATCH, own_words=True),
    *steps(CLIENT_METRICS, "cm", "no.such", "b", None),
    step(CLIENT_METRICS, "", "interval.ms", "200", own_words=True),
    show(CLIENT_METRICS, "cm", "interval.ms", "match"),
    show(CLIENT_METRICS, "cn"),
    show(CLIENT_METRICS, ""),
    replace(CLIENT_METRICS, "cn", interval_ms="200", metrics="m"),
    replace(CLIENT_METRICS, "cn", interval_ms="200", no_such="m"),
    show(CLIENT_METRICS, "cn"),
    show(LOGGER, NODE, "no.such.logger"),
    show(LOGGER, "", own_words=True),
    show(LOGGER, "2", own_words=True),
    step(LOGGER, NODE, "no.such.logger", "DEBUG"),
    step(LOGGER, "", "no.such.logger", "DEBUG", own_words=True),
    step(LOGGER, "2", "no.such.logger", "DEBUG", own_words=True),
    replace(LOGGER, NODE, root="INFO"),
    *(show(kind, "x", own_words=True) for kind in (0, 1, 3, 64)),
    *(step(kind, "x", "a", "b", own_words=True) for kind in (0, 1, 3, 64)),
    create("t"),
    *(list_resources(*kinds) for kinds in ((), (2,), (4,), (8,), (16,), (32,), (3,), (0,))),
    *(list_resources(*kinds) for kinds in ((16, 32, 16), (32, 99))),
    list_resources(version=0),
    replace(GROUP, "h"),
    replace(CLIENT_METRICS, "cm"),
    list_resources(CLIENT_METRICS, GROUP),
)
IS_FIXED = "levels follow from the version of the broker and are never lowered"
FEATURES = (
    *(raised(version=version) for version in (0, 1, 2)),
    *(
        raised((name, level), kind=kind, version=version)
        for version in (0, 1, 2)
        for name, level in (
            ("share.version", 1), ("share.version", 2), ("share.version", -1), ("none", 0),
            ("none", 1), ("metadata.version", 30), ("metadata.version", 29),
            ("metadata.version", 6), ("metadata.version", 31), ("", 1),
        )
        for kind in (0, 1, 2, 3, 7)
    ),
    *(raised(("share.version", 0), kind=kind, version=0) for kind in (1, 2)),
    *(raised(("share.version", 0), kind=kind, version=2) for kind in (0, 1)),
    *(
        raised(*both, version=version)
        for version in (0, 1, 2)
        for both in (
            (("share.version", 1), ("none", 3)), (("none", 3), ("share.version", 9)),
            (("share.version", 1),) * 2, (("share.version", 1), ("share.version", 9)),
        )
    ),
    *(
        raised((name, 0), kind=kind, version=version, differs=IS_FIXED)
        for name in ("share.version", "group.version", "transaction.version")
        for kind, version in ((2, 1), (3, 1), (2, 2), (3, 2))
    ),
)  # fmt: skip
UNITS = (
    "log.retention.ms",
    "log.retention.minutes",
    "log.retention.hours",
    "log.roll.hours",
    "log.roll.ms",
    "log.roll.jitter.ms",
    "log.roll.jitter.hours",
)
TIMES = ("retention.ms", "segment.ms", "segment.jitter.ms", "max.message.bytes")
CHANGES_HERE = frozenset(("read_only",))  # Kafka takes minutes and hours at its start alone
LOST = "once one of them has changed, Kafka shows the others as if they were not set"
SYNONYMS = (
    create("t"),
    create("u", retention_ms="5", segment_ms="6"),
    show(BROKER, NODE, *UNITS, without=CHANGES_HERE),
    show(TOPIC, "t", *TIMES),
    show(TOPIC, "u", *TIMES),
    *(step(BROKER, NODE, key, "7") for key in ("log.retention.ms", "log.roll.ms")),
    step(BROKER, "", "log.retention.ms", "9"),
    show(BROKER, NODE, *(each for each in UNITS if each.endswith("ms")), without=CHANGES_HERE),
    show(BROKER, NODE, "log.retention.minutes", without=CHANGES_HERE, differs=LOST),
    show(TOPIC, "t", *TIMES),
    show(TOPIC, "u", *TIMES),
)
FILES: Mapping[str, Mapping[str, str]] = {
    "synonyms in a file": {"log.retention.minutes": "90", "log.retention.hours": "24"},
}
"""Settings of the broker at the start of a scene."""
SCENES: Mapping[str, Sequence[Question]] = {
    "settings": SETTINGS,
    "resources": RESOURCES,
    "synonyms": tuple(each for each in SYNONYMS if not each.differs),
    "synonyms in a file": SYNONYMS,
    "readers": READERS,
    "sessions": SESSIONS,
    "metadata": METADATA,
    "features": FEATURES,
}
"""By name."""
