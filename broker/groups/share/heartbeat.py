"""Contents of a heartbeat of a share group, and the check that this broker can take it."""

from collections.abc import Collection
from typing import NamedTuple

from broker.groups.share.member import ShareMember
from broker.groups.subscriptions import MAX_ID_CHARACTERS, Target, words_bytes
from protocol.errors import ErrorCode, KafkaError

JOIN_EPOCH, LEAVE_EPOCH = 0, -1
MEMBER_ID_CHARACTERS = 36


class ShareHeartbeat(NamedTuple):
    """One heartbeat; what is None did not change."""

    group_id: str
    member_id: str
    epoch: int
    rack_id: str | None
    names: Collection[str] | None
    client_id: str
    client_host: str

    @property
    def joins(self) -> bool:
        """True when the member begins, or begins again."""
        return self.epoch == JOIN_EPOCH

    @property
    def leaves(self) -> bool:
        """True when the member leaves."""
        return self.epoch == LEAVE_EPOCH

    @property
    def size_bytes(self) -> int:
        """About what its words take."""
        return words_bytes(self.names or (), self.rack_id or "", self.client_id)

    @property
    def stored_bytes(self) -> int:
        """Bytes of its subscription in a record."""
        return sum(len(each.encode()) + 2 for each in self.names or ())


class ShareHeard(NamedTuple):
    """Answer to a member; `assigned` is None where it did not change."""

    member_id: str
    epoch: int
    assigned: Target | None = None

    @property
    def is_over(self) -> bool:
        """True when the member left."""
        return self.epoch == LEAVE_EPOCH


def check_member_id(member_id: str) -> None:
    """INVALID_REQUEST (42): Kafka's clients make ids of 22 characters."""
    if not 1 <= len(member_id) <= MEMBER_ID_CHARACTERS:
        raise _invalid("Invalid member id in the request.")


def check(beat: ShareHeartbeat) -> None:
    """INVALID_REQUEST (42): Kafka's checks in Kafka's order."""
    for name, text in (
        ("MemberId", beat.member_id),
        ("GroupId", beat.group_id),
        ("RackId", beat.rack_id),
    ):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    if len(beat.rack_id or "") > MAX_ID_CHARACTERS:
        raise _invalid(f"RackId has more than {MAX_ID_CHARACTERS} characters.")
    if beat.joins and not beat.names:
        raise _invalid("SubscribedTopicNames must be set in first request.")
    if beat.epoch < LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")


def check_epoch(member: ShareMember, beat: ShareHeartbeat) -> None:
    """FENCED_MEMBER_EPOCH (110), but for an epoch whose answer may have been lost."""
    if beat.joins or beat.epoch == member.epoch:
        return
    if beat.epoch == member.previous_epoch < member.epoch:
        return
    side, known = "greater", f"({member.epoch})"
    if beat.epoch < member.epoch:
        side = "smaller"
        known += f", and it does not match the previous member epoch ({member.previous_epoch})"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a {side} member epoch ({beat.epoch}) than the one known by "
        f"the group coordinator {known}. The member must abandon all its partitions and rejoin.",
    )


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
