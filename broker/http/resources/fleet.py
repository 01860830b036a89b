"""/api/fleet: nodes of the fleet, what each leads and takes, and how far its clock is off."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from broker.fleet.catalog.rows import Incarnation, NodeRow, ShardRow, TopicRow
from broker.http.port.caller import Needs
from broker.http.port.parameters import Asked
from broker.http.port.route import HttpRoute
from config.quantities import instant
from protocol.acls import AclOperation, ResourceType
from storage.env import Clock


class FleetRows(Protocol):
    """Rows of the catalog, as they were at the last look, a second ago or so."""

    nodes: Sequence[NodeRow]
    shards: Sequence[ShardRow]
    rows: Sequence[TopicRow]


class ShownFleet(Protocol):
    """A node's part of its fleet."""

    @property
    def image(self) -> FleetRows:
        """The rows."""

    @property
    def me(self) -> Incarnation | None:
        """The present life; None between two."""


class FleetHttpServices(NamedTuple):
    """The services that the answer is made with."""

    fleet: ShownFleet | None
    clock: Clock


def _shown(services: FleetHttpServices, _: Asked) -> object:
    fleet, now = services.fleet, instant(services.clock.now_ms())
    if fleet is None:
        return {"now": now, "nodes": None}
    rows, me = fleet.image, fleet.me
    living = {each.incarnation for each in rows.nodes if not each.is_fenced}
    return {
        "now": now,
        "node": None if me is None else me.node_id,
        "nodes": [_node(each, rows) for each in rows.nodes],
        "shards": len(rows.shards),
        "shards_without_owner": sum(each.owner not in living for each in rows.shards),
    }


def _node(node: NodeRow, rows: FleetRows) -> dict[str, object]:
    owned = {each.shard_id: each.load for each in rows.shards if each.owner == node.incarnation}
    led = sum(shard in owned for topic in rows.rows for shard in topic.shards)
    state = "gone" if node.is_fenced else "draining" if node.is_draining else "alive"
    host, port = node.address
    return {
        "node": node.incarnation.node_id,
        "address": f"{host}:{port}",
        "version": node.version,
        "life": node.incarnation.number,
        "state": state,
        "renewed": instant(node.renewed_ms),
        "shards": len(owned),
        "partitions": led,
        "bytes_per_second": sum(owned.values()),
        "clock_ahead_ms": None if node.is_fenced else node.ahead_ms,
    }


ROUTES = (
    HttpRoute(
        FleetHttpServices,
        "GET",
        "/api/fleet",
        "Nodes of the fleet: lives, leases, what each leads and takes from producers, by how much "
        "its clock is ahead of the database's. A broker that stands alone has none.",
        needs=Needs(AclOperation.DESCRIBE, ResourceType.CLUSTER),
        read=_shown,
    ),
)
