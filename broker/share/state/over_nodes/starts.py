"""Starts of share partitions whose states other nodes of a fleet remember, for retention at the
leaders of the partitions: asked now and then, of groups that keep what they have not finished.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.key import ShareKey
from broker.share.state.remembered import SharePartitionState
from broker.share.undelivered import keeping_groups
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.errors import KafkaError

MOST_KEYS = 10_000
"""Asked in one round; of others all records stay."""
Summary = Callable[[ShareKey], Deferred[SharePartitionState]]


class StartsElsewhere:
    """Starts as of the last round. Asked from any thread, refreshed on the loop."""

    def __init__(
        self,
        local: ShareCoordinator,
        topics: TopicCatalog,
        config: ConfigStore,
        summary: Summary,
    ) -> None:
        """Nothing is known."""
        self._local = local
        self._topics = topics
        self._config = config
        self._summary = summary
        self._known: Mapping[ShareKey, int] = {}

    def of(self, key: ShareKey) -> int | None:
        """The first offset that may be unfinished; -1 where nobody has read, None: not known."""
        return self._known.get(key)

    async def refresh(self) -> None:
        """Has the starts as of now. What cannot be asked is not known any more."""
        asked = [(key, self._summary(key)) for key in islice(self._keys(), MOST_KEYS)]
        found: dict[ShareKey, int] = {}
        for key, summary in asked:
            try:
                found[key] = (await wait_for(summary)).start_offset
            except KafkaError:
                continue
        self._known = found

    def _keys(self) -> Iterator[ShareKey]:
        for group in keeping_groups(self._config):
            for partition in self._topics.image.led_here():
                topic_id = partition.log.topic_id
                if topic_id is None or partition.topic in self._topics.internal_topics:
                    continue
                key = ShareKey(group, topic_id, partition.index)
                if not self._local.leads(key):
                    yield key
