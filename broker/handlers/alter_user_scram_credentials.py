"""AlterUserScramCredentials: adds, changes and removes credentials; durable when it is answered.

Each user counts by itself: one that is refused changes nothing, the others are stored together.
Codes and texts are Kafka's (ScramControlManager); keys of a wrong length are refused beyond it.
"""

from collections import Counter
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.wire_error import wire_error
from broker.security.credentials import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    Credential,
    CredentialKey,
    Mechanism,
    derived,
)
from broker.security.users import CredentialRows, Users
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.alter_user_scram_credentials import (
    AlteredUser,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    Deletion,
    Upsertion,
)
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

Rows = dict[CredentialKey, Credential]
Outcomes = dict[str, KafkaError | None]
_MECHANISMS = {each.value: each for each in Mechanism}


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    users: Users


Context = RequestContext[Services]


async def handle(
    request: AlterUserScramCredentialsRequest, context: Context
) -> AlterUserScramCredentialsResponse:
    """One result for each user, in the order in which they are named."""
    users = context.services.users
    if not context.may(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        denied = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        names = dict.fromkeys(
            [each.name for each in request.deletions] + [each.name for each in request.upsertions]
        )
        results = [_result(name, denied, context) for name in names]
        return AlterUserScramCredentialsResponse(results=results)
    outcomes: Outcomes = {}

    def altered(before: CredentialRows) -> Rows:
        nonlocal outcomes
        after, outcomes = _altered(dict(before), request)
        return after

    try:
        await users.change(altered)
    except StorageError as fault:
        error = wire_error(fault)
        outcomes = {name: before or error for name, before in outcomes.items()}
    return AlterUserScramCredentialsResponse(
        results=[_result(name, error, context) for name, error in outcomes.items()]
    )


def _altered(rows: Rows, request: AlterUserScramCredentialsRequest) -> tuple[Rows, Outcomes]:
    """The rows with every change that can be, and what became of each user."""
    outcomes: Outcomes = {}
    changes: list[Deletion | Upsertion] = [*request.deletions, *request.upsertions]
    times = Counter(each.name for each in changes)
    for change in changes:
        try:
            _check_named_once(times[change.name])
            _apply(rows, change)
        except KafkaError as error:
            outcomes[change.name] = error
        else:
            outcomes[change.name] = None
    return rows, outcomes


def _apply(rows: Rows, change: Deletion | Upsertion) -> None:
    if not change.name:
        raise _unacceptable("Username must not be empty")
    mechanism = _MECHANISMS.get(change.mechanism)
    if mechanism is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    key = CredentialKey(change.name, mechanism)
    if isinstance(change, Upsertion):
        rows[key] = _credential(mechanism, change)
    elif rows.pop(key, None) is None:
        raise KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        )


def _credential(mechanism: Mechanism, change: Upsertion) -> Credential:
    if change.iterations < MIN_ITERATIONS:
        raise _unacceptable("Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        raise _unacceptable("Too many iterations")
    if len(change.salted_password) != mechanism.key_bytes:
        raise _unacceptable(f"A salted password of {mechanism.key_bytes} bytes is needed")
    if not change.salt:
        raise _unacceptable("Salt must not be empty")
    salt, salted_password = bytes(change.salt), bytes(change.salted_password)
    return derived(mechanism, salted_password, salt, change.iterations)


def _check_named_once(times: int) -> None:
    if times > 1:
        raise KafkaError(
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        )


def _unacceptable(text: str) -> KafkaError:
    return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)


def _result(name: str, error: KafkaError | None, context: Context) -> AlteredUser:
    if error is None:
        return AlteredUser(user=name)
    context.count_error(error.code)
    return AlteredUser(user=name, error_code=error.code, error_message=error.message)
