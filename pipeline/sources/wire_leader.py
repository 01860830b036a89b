"""The leader of a partition while it is read: a connection to it, and one to the next leader.

Answers that mean "not I" and connections that fail are waited out while nothing comes, then raised.
"""

import time
from contextlib import suppress
from typing import Self

from pipeline.broker_client import BrokerClient
from pipeline.errors import BrokerRefused, DataLost, NoConnection, NothingThere, NotNow
from pipeline.leaders import Leaders
from pipeline.sources.chunks import WireChunk
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.errors import ErrorCode

PATIENCE_SECONDS = 60.0
"""Longest wait for offsets that were promised."""
RETRY_SECONDS = 0.2


class WireLeader:
    """Leader of the partition of a chunk. Not for several threads at once."""

    def __init__(self, chunk: WireChunk) -> None:
        """Asks nobody yet."""
        self._chunk = chunk
        self._address = chunk.address
        self._client: BrokerClient | None = None
        self.went_on()

    @property
    def client(self) -> BrokerClient:
        """Connected to the leader that was last heard of, which has the topic that was planned.

        BrokerRefused; DataLost when the topic is gone, or was made again.
        """
        if self._client is None:
            client = BrokerClient(self._address, self._chunk.security)
            try:
                _refuse_another_topic(client, self._chunk)
            except BaseException:
                client.close()
                raise
            self._client = client
        return self._client

    def moved(self, error: BrokerRefused) -> None:
        """Looks for the next one: who was asked does not lead. Raises `error` after long."""
        self.close()
        if time.monotonic() >= self._deadline:
            raise error
        time.sleep(RETRY_SECONDS)
        view = self._chunk.view
        with suppress(NoConnection, NotNow, NothingThere):
            known = Leaders(self._chunk.bootstrap or self._address, self._chunk.security)
            self._address = known.of_partition(view.topic, view.partition) or self._address

    def went_on(self) -> None:
        """Something came: patience begins again."""
        self._deadline = time.monotonic() + PATIENCE_SECONDS

    def waited(self, why: str) -> None:
        """Counts a wait for nothing; BrokerRefused after long."""
        if time.monotonic() > self._deadline:
            raise BrokerRefused(f"{self._address}: {self._chunk.view} {why}")

    def close(self) -> None:
        """Lets the connection go."""
        if self._client is not None:
            self._client.close()
        self._client = None

    def __enter__(self) -> Self:
        """Connects when it is used."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def _refuse_another_topic(client: BrokerClient, chunk: WireChunk) -> None:
    view = chunk.view
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=view.topic)], allow_auto_topic_creation=False
    )
    topic = client.call(request).topics[0]
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise DataLost(f"the topic {view.topic} was deleted while it was read")
    client.check(topic.error_code, "Metadata", f"DESCRIBE on the topic {view.topic}")
    if view.topic_id and topic.topic_id.int and topic.topic_id.hex != view.topic_id:
        raise DataLost(f"the topic {view.topic} was deleted and made again while it was read")
