"""DescribeUserScramCredentials 0: who has which credentials, never the secret (KIP-554)."""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, String


@message
class UserName:
    """A user that is asked about."""

    name: str = field(String)


@message(flexible_from=0)
class DescribeUserScramCredentialsRequest:
    """Users; null or none: all of them."""

    users: list[UserName] | None = field(Array(UserName), nullable=True)


@message
class CredentialInfo:
    """One credential."""

    mechanism: int = field(Int8, doc="1 SCRAM-SHA-256, 2 SCRAM-SHA-512")
    iterations: int = field(Int32)


@message
class DescribedUser:
    """The credentials of one user, or why there are none."""

    user: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    credential_infos: list[CredentialInfo] = field(Array(CredentialInfo))


@message(flexible_from=0)
class DescribeUserScramCredentialsResponse:
    """One result per user."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    results: list[DescribedUser] = field(Array(DescribedUser))


API = Api(
    50,
    "DescribeUserScramCredentials",
    0,
    0,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
