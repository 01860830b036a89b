"""The scenes: questions in order, asked of a new broker; later ones meet what earlier ones did."""

from collections.abc import Mapping, Sequence

from tests.support.questions.of_settings import BROKER, NODE, TOPIC, create, show, step, steps
from tests.support.questions.question import Question

UNCLEAN = "unclean.leader.election.enable"
LEADERS, FOLLOWERS = (f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
RATE = "leader.replication.throttled.rate"
MOVES = "replica.alter.log.dirs.io.max.bytes.per.second"
NO_POOLS = "pools of threads that are not there may have any size"
TYPING_ERRORS = "a name that nobody knows is refused: it is a slip of the pen"
POOLS = {
    "background.threads": "9",
    "num.network.threads": "4",
    "num.recovery.threads.per.data.dir": "3",
    "num.replica.fetchers": "2",
}
"""With sizes that Kafka takes: not more than twice, nor less than half of what there is."""


def _of_the_broker(name: str) -> list[Question]:
    asked = steps(BROKER, name, "num.io.threads", "16", "0", "x", own_words=True)
    asked += steps(BROKER, name, "num.io.threads", "3", differs=NO_POOLS)
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
    *steps(TOPIC, "t", "remote.storage.enable", "false"),
    *steps(TOPIC, "t", "message.format.version", "3.0", None, own_words=True),
    create("u", unclean_leader_election_enable="true", follower_replication_throttled_replicas=""),
    create("v", unclean_leader_election_enable="1"),
    show(TOPIC, "t", UNCLEAN, LEADERS, FOLLOWERS, "remote.storage.enable"),
    show(TOPIC, "u", UNCLEAN, LEADERS, FOLLOWERS, "remote.storage.enable"),
    *_of_the_broker(NODE),
    *_of_the_broker(""),
    step(BROKER, "2", "num.io.threads", "8", own_words=True),
    *steps(BROKER, NODE, "num.io.threads", "9"),
    *steps(BROKER, "", "num.network.threads", "4"),
    show(BROKER, NODE, "num.io.threads", UNCLEAN, *POOLS),
    show(BROKER, "", "num.io.threads", UNCLEAN, *POOLS),
)

SCENES: Mapping[str, Sequence[Question]] = {"settings": SETTINGS}
"""By name."""
