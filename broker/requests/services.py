"""The services that handlers of requests use, and nothing else of the broker."""

from typing import Any, Protocol

from broker.fetching.damage import DamageMet, DamageServices
from broker.fetching.sessions import FetchSessions
from broker.groups.coordinator import GroupCoordinator
from broker.guards.admission import Intake
from broker.partitions.fetch_waiters import FetchWaiters
from broker.quotas.service import Quotas
from broker.record_times.audit_stream import AuditStream
from broker.record_times.offenders import DirtyClients
from broker.runtime.admin_trail import AdminTrail
from broker.runtime.answers import Answers
from broker.runtime.endpoint import Endpoint
from broker.runtime.memory_account import MemoryAccount
from broker.runtime.request_context import RequestContext
from broker.server.server import Server
from broker.topics.services import TopicServices
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.producer_ids import ProducerIds
from protocol.api import Api


class HandlerServices(TopicServices, DamageServices, Protocol):
    """A broker as handlers see it. Used on the event loop."""

    cluster_id: str
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    waiters: FetchWaiters
    memory: MemoryAccount
    answers: Answers
    dirty_clients: DirtyClients
    trail: AdminTrail
    audit: AuditStream | None
    quotas: Quotas
    producer_ids: ProducerIds
    intake: Intake
    server: Server
    damage: DamageMet
    served: tuple[Api, ...]

    def advertised(self, context: RequestContext[Any]) -> Endpoint:
        """The address of this broker that the client of `context` can reach."""


HandlerContext = RequestContext[HandlerServices]
"""What a handler is given beside its request."""
