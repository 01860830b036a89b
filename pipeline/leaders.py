"""Leaders of the partitions of topics, from the brokers' last answer."""

import time
from typing import Any

from broker.access.settings import IN_THE_CLEAR, ClientSecurity
from pipeline.broker_client import BrokerClient, ask_one
from pipeline.errors import NothingThere, NotNow
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.errors import ErrorCode

PATIENCE_SECONDS = 30.0
RETRY_SECONDS = 0.2


class Leaders:
    """Asks when it has to, and remembers."""

    def __init__(self, bootstrap: str, security: ClientSecurity = IN_THE_CLEAR) -> None:
        """Asks nothing yet."""
        self._bootstrap, self._security = bootstrap, security
        self._known: dict[str, list[str]] = {}

    def of(self, topic: str) -> list[str]:
        """HOST:PORT by partition; empty where there is no leader now.

        NothingThere for a topic that does not exist, BrokerRefused.
        """
        if topic not in self._known:
            answer, found = self._asked(topic)
            brokers = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
            ordered = sorted(found.partitions, key=lambda each: int(each.partition_index))
            self._known[topic] = [brokers.get(each.leader_id, "") for each in ordered]
        return self._known[topic]

    def of_partition(self, topic: str, partition: int) -> str:
        """HOST:PORT; empty where there is no leader now, or no such partition. As `of`."""
        found = self.of(topic)
        return found[partition] if partition < len(found) else ""

    def topic_id(self, topic: str) -> str:
        """32 hex digits; empty from a broker of before topic ids. As `of`."""
        _, found = self._asked(topic)
        return found.topic_id.hex if found.topic_id.int else ""

    def forget(self, topic: str | None = None) -> None:
        """Ask again the next time: of the topic, or of all."""
        if topic is None:
            self._known.clear()
        else:
            self._known.pop(topic, None)

    def _asked(self, topic: str) -> tuple[Any, Any]:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self._metadata(topic)
            except NotNow:
                if time.monotonic() >= until:
                    raise
            time.sleep(RETRY_SECONDS)

    def _metadata(self, topic: str) -> tuple[Any, Any]:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )

        def asked(client: BrokerClient) -> tuple[BrokerClient, Any]:
            return client, client.call(request)

        client, answer = ask_one(self._bootstrap, asked, self._security)
        found = answer.topics[0]
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NothingThere(f"the topic {topic!r} is not on {self._bootstrap}: make it first")
        client.check(found.error_code, f"the topic {topic}", f"DESCRIBE on the topic {topic}")
        return answer, found
