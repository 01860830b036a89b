"""Contents of a heartbeat, and the check that this broker can take it."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from broker.groups.consumer.automaton import PatternError
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import Assigned
from broker.groups.consumer.reconciliation import Owned
from broker.groups.consumer.regex import topic_pattern
from broker.groups.subscriptions import MAX_ID_CHARACTERS, words_bytes
from protocol.apis.consumer_group_heartbeat import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from protocol.errors import ErrorCode, KafkaError

ShowsTopic = Callable[[str], bool]


class ConsumerHeartbeat(NamedTuple):
    """One heartbeat; what is None did not change."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    names: Collection[str] | None
    regex: str | None
    assignor: str | None
    owned: Owned | None
    client_id: str
    client_host: str
    shows: ShowsTopic | None = None
    """The topics that the member may hear of, by name; None for all."""

    @property
    def joins(self) -> bool:
        """True when the member begins, or begins again."""
        return self.epoch == JOIN_EPOCH

    @property
    def leaves(self) -> bool:
        """True when the member leaves, perhaps for a while only."""
        return self.epoch in {LEAVE_EPOCH, LEAVE_STATIC_EPOCH}

    @property
    def is_full(self) -> bool:
        """True for a full heartbeat, which wants a full answer."""
        subscribes = self.names is not None or self.regex is not None
        return self.rebalance_timeout_ms != -1 and subscribes and self.owned is not None

    @property
    def size_bytes(self) -> int:
        """About what its words take."""
        return words_bytes(self.names or (), self.regex or "", self.client_id)

    @property
    def stored_bytes(self) -> int:
        """Bytes of its subscription in a record."""
        return len(self.regex or "") + sum(len(each.encode()) + 2 for each in self.names or ())


class Heard(NamedTuple):
    """Answer to a member."""

    member_id: str
    epoch: int
    assigned: Assigned | None = None


def check(beat: ConsumerHeartbeat, assignors: Collection[str], *, ids_by_clients: bool) -> None:
    """INVALID_REQUEST (42), or UNSUPPORTED_ASSIGNOR (112): Kafka's checks in Kafka's order."""
    for name, text in (
        ("GroupId", beat.group_id),
        ("InstanceId", beat.instance_id),
        ("RackId", beat.rack_id),
    ):
        _check_id(name, text)
    if ids_by_clients or not (beat.joins or beat.epoch == LEAVE_STATIC_EPOCH):
        _check_id("MemberId", beat.member_id)
    if len(beat.member_id) > MAX_ID_CHARACTERS:
        raise _invalid(f"MemberId has more than {MAX_ID_CHARACTERS} characters.")
    if beat.joins:
        _check_join(beat)
    if beat.epoch == LEAVE_STATIC_EPOCH and beat.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    if beat.epoch < LEAVE_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if beat.assignor is not None and beat.assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {beat.assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _check_id(name: str, text: str | None) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{name} can't be empty.")
    if text is not None and name != "GroupId" and len(text) > MAX_ID_CHARACTERS:
        raise _invalid(f"{name} has more than {MAX_ID_CHARACTERS} characters.")


def _check_join(beat: ConsumerHeartbeat) -> None:
    if beat.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if beat.owned is None or any(beat.owned.values()):
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if beat.names is None and beat.regex is None:
        raise _invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )


def check_expression(beat: ConsumerHeartbeat, consumer: ConsumerGroup | None) -> None:
    """INVALID_REGULAR_EXPRESSION (128) for a new one that is none."""
    if not beat.regex:
        return
    if consumer is not None and beat.regex in consumer.patterns:
        check_matched(beat.regex, consumer)
        return
    try:
        topic_pattern(beat.regex)
    except PatternError as error:
        raise _bad_expression(beat.regex, str(error)) from error


def check_matched(regex: str, consumer: ConsumerGroup) -> None:
    """INVALID_REGULAR_EXPRESSION (128) for one that could not be looked up."""
    if regex in consumer.refused:
        raise _bad_expression(regex, consumer.refused[regex])


def _bad_expression(regex: str, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{regex[:MAX_ID_CHARACTERS]}` is not a valid regular "
        f"expression: {why}.",
    )


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
