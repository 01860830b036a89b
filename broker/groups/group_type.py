"""Types of groups, as ListGroups names them."""

from enum import StrEnum


class GroupType(StrEnum):
    """Protocols that a group can follow; the values are the wire's."""

    CLASSIC = "classic"
    """A member assigns."""
    CONSUMER = "consumer"
    """The broker assigns (KIP-848)."""
    SHARE = "share"
    """Members share partitions (KIP-932)."""
    STREAMS = "streams"
    """Members are threads of an application, and run its tasks (KIP-1071)."""
