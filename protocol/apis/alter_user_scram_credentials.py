"""AlterUserScramCredentials 0: adds, changes and removes credentials of users (KIP-554).

The client salts the password and sends the result: the password itself never comes here.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Bytes, Int8, Int16, Int32, String


@message
class Deletion:
    """A credential to remove."""

    name: str = field(String)
    mechanism: int = field(Int8, doc="1 SCRAM-SHA-256, 2 SCRAM-SHA-512")


@message
class Upsertion:
    """A credential to add or replace."""

    name: str = field(String)
    mechanism: int = field(Int8, doc="1 SCRAM-SHA-256, 2 SCRAM-SHA-512")
    iterations: int = field(Int32)
    salt: bytes = field(Bytes)
    salted_password: bytes = field(Bytes)


@message(flexible_from=0)
class AlterUserScramCredentialsRequest:
    """Changes of any number of users, each by itself."""

    deletions: list[Deletion] = field(Array(Deletion))
    upsertions: list[Upsertion] = field(Array(Upsertion))


@message
class AlteredUser:
    """The outcome for one user."""

    user: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)


@message(flexible_from=0)
class AlterUserScramCredentialsResponse:
    """One result per user."""

    throttle_time_ms: int = field(Int32)
    results: list[AlteredUser] = field(Array(AlteredUser))


API = Api(
    51,
    "AlterUserScramCredentials",
    0,
    0,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
