"""Clients that push metrics: their subscription, and when each may ask and push again.

The rules are those of `ClientMetricsInstance` of Kafka 4.3. Times are of a monotonic clock.
"""

from collections import OrderedDict
from collections.abc import Iterable
from uuid import UUID

from broker.telemetry.facts import ClientFacts
from broker.telemetry.subscriptions import Subscribed, subscription_id
from protocol.errors import ErrorCode

MOST_INSTANCES = 16_384
"""As in Kafka: the one that was not heard of for longest makes room for a new one."""
LEAST_LIFE_MS = 60_000
INTERVALS_OF_SILENCE = 3

NEVER = -(1 << 62)
MAY_ASK_AGAIN = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class ClientInstance:
    """One client, as long as its subscription does not change."""

    __slots__ = (
        "connection_id",
        "ends_ms",
        "facts",
        "instance_id",
        "is_terminating",
        "last_error",
        "last_get_ms",
        "last_push_ms",
        "subscribed",
        "subscription_id",
        "version",
    )

    def __init__(
        self, instance_id: UUID, facts: ClientFacts, subscribed: Subscribed, version: int
    ) -> None:
        """A client that has neither asked nor pushed; `version` is that of the subscriptions."""
        self.instance_id = instance_id
        self.facts = facts
        self.subscribed = subscribed
        self.subscription_id = subscription_id(subscribed, instance_id)
        self.version = version
        self.last_get_ms = self.last_push_ms = NEVER
        self.last_error = ErrorCode.NONE
        self.is_terminating = False
        self.connection_id = -1
        self.ends_ms = 0

    def heard(self, now_ms: int) -> None:
        """A request came: it is forgotten after three intervals of silence, or a minute."""
        life_ms = INTERVALS_OF_SILENCE * self.subscribed.interval_ms
        self.ends_ms = now_ms + max(LEAST_LIFE_MS, life_ms)

    def may_get(self, now_ms: int) -> bool:
        """True when the client may ask for its subscription now; notes that it did."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) >= self.subscribed.interval_ms:
            self.last_get_ms = now_ms
            return True
        return self.last_error in MAY_ASK_AGAIN

    def may_push(self, now_ms: int) -> bool:
        """True when the interval is over, or this is the first push of a subscription; notes it.

        The first may come at once: clients spread theirs over half to one and a half intervals.
        """
        is_first = self.last_get_ms > self.last_push_ms
        if is_first or now_ms - self.last_push_ms >= self.subscribed.interval_ms:
            self.last_push_ms = now_ms
            return True
        return False


class ClientInstances:
    """All of them, a bounded number. Used from the event loop."""

    def __init__(self, most: int = MOST_INSTANCES) -> None:
        """None yet; `most` of them at once."""
        self._most = most
        self._by_id: OrderedDict[UUID, ClientInstance] = OrderedDict()
        self._of_connection: dict[int, UUID] = {}
        self.evicted = 0
        """Instances that made room for others."""

    def __len__(self) -> int:
        """Instances that are known."""
        return len(self._by_id)

    def get(self, instance_id: UUID) -> ClientInstance | None:
        """An instance, which is now the one that was heard of last."""
        found = self._by_id.get(instance_id)
        if found is not None:
            self._by_id.move_to_end(instance_id)
        return found

    def put(self, instance: ClientInstance, connection_id: int) -> ClientInstance | None:
        """Adds or replaces an instance; gives the one that it pushes out.

        Of a connection the last instance counts.
        """
        before = self._by_id.pop(instance.instance_id, None)
        if before is not None:
            self._unbind(before)
        instance.connection_id = connection_id
        self._by_id[instance.instance_id] = instance
        self._of_connection[connection_id] = instance.instance_id
        if len(self._by_id) <= self._most:
            return None
        _, eldest = self._by_id.popitem(last=False)
        self._unbind(eldest)
        self.evicted += 1
        return eldest

    def connection_lost(self, connection_id: int) -> ClientInstance | None:
        """Forgets the instance that a connection brought, and gives it."""
        instance_id = self._of_connection.pop(connection_id, None)
        return None if instance_id is None else self._by_id.pop(instance_id, None)

    def expire(self, now_ms: int) -> Iterable[ClientInstance]:
        """Forgets those that have been silent for too long, and gives them."""
        silent = [each for each in self._by_id.values() if each.ends_ms <= now_ms]
        for each in silent:
            del self._by_id[each.instance_id]
            self._unbind(each)
        return silent

    def _unbind(self, instance: ClientInstance) -> None:
        """Its connection brings it no longer."""
        if self._of_connection.get(instance.connection_id) == instance.instance_id:
            del self._of_connection[instance.connection_id]
