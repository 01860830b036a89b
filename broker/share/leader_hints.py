"""Leaders of partitions for which members asked the wrong node of a fleet (KIP-951): they need not
ask for metadata first.
"""

from broker.partitions.leadership import NOBODY
from broker.partitions.partition import Partition
from broker.runtime.request_context import Peer
from broker.server.endpoints import AdvertisedEndpoints
from broker.share.sessions import SharedPlace
from broker.topics.metadata_image import MetadataImage
from protocol.apis.share_acknowledge import LeaderIdAndEpoch, NodeEndpoint
from protocol.errors import ErrorCode, KafkaError

NO_EPOCH = -1


class LeaderHints:
    """Those of one answer."""

    def __init__(self, image: MetadataImage, endpoints: AdvertisedEndpoints, peer: Peer) -> None:
        """None was given."""
        self._image = image
        self._others = endpoints.others_of(peer)
        self._named: set[int] = set()

    def of(self, place: SharedPlace, error: KafkaError | None) -> LeaderIdAndEpoch:
        """The leader of a partition that was refused because this node does not lead it."""
        if error is None or error.code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
            return LeaderIdAndEpoch()
        partition = self._partition(place)
        elsewhere = None if partition is None else partition.leader_elsewhere
        if elsewhere is None:
            return LeaderIdAndEpoch(leader_id=NOBODY, leader_epoch=NO_EPOCH)
        self._named.add(elsewhere.node_id)
        return LeaderIdAndEpoch(leader_id=elsewhere.node_id, leader_epoch=elsewhere.epoch)

    def nodes(self) -> list[NodeEndpoint]:
        """Addresses of the leaders that were named."""
        return [
            NodeEndpoint(
                node_id=node_id, host=self._others[node_id].host, port=self._others[node_id].port
            )
            for node_id in sorted(self._named & self._others.keys())
        ]

    def _partition(self, place: SharedPlace) -> Partition | None:
        topic = self._image.by_id.get(place[0])
        return None if topic is None else topic.partition(place[1])
