"""Client telemetry (KIP-714): clients ask for their subscription, and push the metrics in it.

The rules and their order are those of `ClientMetricsManager` of Kafka 4.3. What is pushed becomes
series for the scrape.
"""

from asyncio import Future
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from broker.server.client_software import ClientSoftware
from broker.telemetry.facts import ClientFacts
from broker.telemetry.instances import ClientInstance, ClientInstances
from broker.telemetry.payload import read_push
from broker.telemetry.points import ClientName
from broker.telemetry.series import ClientSeries
from broker.telemetry.subscriptions import Settings, SubscriptionBook
from protocol.errors import ErrorCode, KafkaError
from protocol.records.compression import Codec
from storage.env import Clock, Rng
from storage.files.meta_properties import kafka_uuid

ZERO, RESERVED = UUID(int=0), (UUID(int=0), UUID(int=1))
MOST_WAITING_BYTES = 16 * 1024 * 1024
"""Packed bytes of pushes that wait to be read."""
MS = 1000
LINGER_MS = 60_000
"""Last values of a client that closed stay for so long, so that a scrape finds them."""
LATEST_PUSH = 1.5
"""Intervals after which a client's next push comes at the latest, by its jitter."""

T = TypeVar("T")


class PushLane(Protocol):
    """A thread that reads pushes."""

    def run(self, work: Callable[..., T], *args: object) -> "Future[T]":
        """Runs it there."""


class TelemetryLimits(NamedTuple):
    """Bounds on what clients push."""

    max_bytes: int
    max_series: int


class TelemetryServices(NamedTuple):
    """Services that client telemetry uses."""

    clock: Clock
    rng: Rng
    lane: PushLane
    subscriptions: Callable[[], Mapping[str, Settings]]
    """Gives the settings of each subscription, by its name."""
    software: ClientSoftware


class PushedMetrics(NamedTuple):
    """A push, as it came."""

    instance_id: UUID
    subscription_id: int
    is_terminating: bool
    compression_type: int
    metrics: bytes


class PushSender(NamedTuple):
    """The client that a request came from."""

    connection_id: int
    facts: ClientFacts


class ClientTelemetry:
    """Used from the event loop, but for `series.families`."""

    def __init__(self, services: TelemetryServices, limits: TelemetryLimits) -> None:
        """No client is known."""
        self._services = services
        self._book = SubscriptionBook(services.subscriptions)
        self.limits = limits
        self.software = services.software
        self.instances = ClientInstances()
        self.series = ClientSeries(limits.max_series)
        self.pushes = 0
        """Pushes that were taken."""
        self._waiting_bytes = 0

    def subscribe(self, instance_id: UUID, sender: PushSender) -> ClientInstance:
        """The instance of a client that asks, with its subscription; a new one for the zero id.

        KafkaError: THROTTLING_QUOTA_EXCEEDED (89) when it asks before its interval is over.
        """
        now_ms = self._monotonic_ms()
        instance = self._instance(instance_id if instance_id != ZERO else self._new_id(), sender)
        if not instance.may_get(now_ms):
            raise _too_early(instance_id)
        instance.last_error = ErrorCode.NONE
        return instance

    async def push(self, pushed: PushedMetrics, sender: PushSender) -> None:
        """Takes a push, when it is read.

        KafkaError: INVALID_REQUEST (42), THROTTLING_QUOTA_EXCEEDED (89), UNKNOWN_SUBSCRIPTION_ID
        (117), UNSUPPORTED_COMPRESSION_TYPE (76), TELEMETRY_TOO_LARGE (118), INVALID_RECORD (87).
        """
        if pushed.instance_id in RESERVED:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{kafka_uuid(pushed.instance_id)} is no id of a client instance",
            )
        instance = self._instance(pushed.instance_id, sender)
        was_terminating, instance.is_terminating = instance.is_terminating, pushed.is_terminating
        try:
            codec = self._checked(pushed, instance, was_terminating=was_terminating)
            if pushed.metrics:
                await self._read(pushed, codec, instance)
        except KafkaError as error:
            instance.last_error = error.code
            raise
        instance.last_error = ErrorCode.NONE
        self.pushes += 1
        if pushed.is_terminating:
            self.series.leave(pushed.instance_id, self._monotonic_ms() + LINGER_MS)

    def connection_lost(self, connection_id: int) -> None:
        """The client of a connection is gone, as far as it is the one it came by."""
        gone = self.instances.connection_lost(connection_id)
        if gone is not None:
            self._gone(gone)

    async def expire(self) -> None:
        """Forgets clients that are silent, and series of those that are gone."""
        now_ms = self._monotonic_ms()
        for each in self.instances.expire(now_ms):
            self._gone(each)
        self.series.expire(now_ms)

    def _checked(
        self, pushed: PushedMetrics, instance: ClientInstance, *, was_terminating: bool
    ) -> Codec:
        """The codec of a push that may be taken."""
        if was_terminating:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Client {kafka_uuid(pushed.instance_id)} said before that it terminates",
            )
        if not instance.may_push(self._monotonic_ms()) and not pushed.is_terminating:
            raise _too_early(pushed.instance_id)
        if pushed.subscription_id != instance.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        codec = _codec(pushed.compression_type)
        if len(pushed.metrics) > self.limits.max_bytes:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)
        return codec

    async def _read(self, pushed: PushedMetrics, codec: Codec, instance: ClientInstance) -> None:
        size = len(pushed.metrics)
        if self._waiting_bytes and self._waiting_bytes + size > MOST_WAITING_BYTES:
            self.series.dropped["busy"] += 1
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "Too many pushes wait")
        client = ClientName(instance.facts.client_id or "", kafka_uuid(pushed.instance_id))
        self._waiting_bytes += size
        try:
            read = await self._services.lane.run(
                read_push, codec, pushed.metrics, self.limits.max_bytes, client
            )
        finally:
            self._waiting_bytes -= size
        self.series.dropped.update(read.dropped)
        self.series.take(pushed.instance_id, read.points, instance.ends_ms)
        if self.instances.get(pushed.instance_id) is None:
            self._gone(instance)

    def _instance(self, instance_id: UUID, sender: PushSender) -> ClientInstance:
        """The instance, made for a new client, and again when the subscriptions changed."""
        version = self._book.version
        found = self.instances.get(instance_id)
        if found is None or found.version != version:
            facts = sender.facts if found is None else found.facts
            subscribed = self._book.of(facts, instance_id)
            found = ClientInstance(instance_id, facts, subscribed, version)
            pushed_out = self.instances.put(found, sender.connection_id)
            if pushed_out is not None:
                self._gone(pushed_out)
        found.heard(self._monotonic_ms())
        return found

    def _gone(self, instance: ClientInstance) -> None:
        """Its series stay until its next push would have come, had it only lost its connection."""
        overdue_ms = int(LATEST_PUSH * instance.subscribed.interval_ms)
        self.series.leave(instance.instance_id, self._monotonic_ms() + max(LINGER_MS, overdue_ms))

    def _new_id(self) -> UUID:
        """A random id that no client has."""
        while True:
            instance_id = self._services.rng.uuid()
            if instance_id not in RESERVED and self.instances.get(instance_id) is None:
                return instance_id

    def _monotonic_ms(self) -> int:
        return int(self._services.clock.monotonic() * MS)


def _codec(number: int) -> Codec:
    try:
        return Codec(number)
    except ValueError as error:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from None


def _too_early(instance_id: UUID) -> KafkaError:
    return KafkaError(
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        f"Client {kafka_uuid(instance_id)} asks before its push interval is over",
    )
