"""DescribeUserScramCredentials: who has which credentials, never the secret (KIP-554)."""

from collections import Counter
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.security.credentials import Mechanism
from broker.security.users import Users
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.describe_user_scram_credentials import (
    CredentialInfo,
    DescribedUser,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from protocol.errors import ErrorCode

NO_ERROR = ""
"""Kafka's text where there is none: empty, not null."""
_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_NOBODY = "Attempt to describe a user credential that does not exist: "


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    users: Users


Context = RequestContext[Services]


def handle(
    request: DescribeUserScramCredentialsRequest, context: Context
) -> DescribeUserScramCredentialsResponse:
    """One result for each user that is named, or for each that there is."""
    users = context.services.users
    if not context.may(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return _denied(request, context)
    names = Counter(each.name for each in request.users or ())
    names = names or Counter({key.user: 1 for key in users.rows})
    return DescribeUserScramCredentialsResponse(
        error_message=NO_ERROR,
        results=[_described(users, name, times, context) for name, times in names.items()],
    )


def _denied(
    request: DescribeUserScramCredentialsRequest, context: Context
) -> DescribeUserScramCredentialsResponse:
    """The error of the whole, and of each user that is named, as Kafka answers."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    context.count_error(code)
    names = dict.fromkeys(each.name for each in request.users or ())
    return DescribeUserScramCredentialsResponse(
        error_code=code,
        error_message=code.description,
        results=[
            DescribedUser(user=name, error_code=code, error_message=code.description)
            for name in names
        ],
    )


def _described(users: Users, name: str, times: int, context: Context) -> DescribedUser:
    if times > 1:
        return _refused(name, ErrorCode.DUPLICATE_RESOURCE, _TWICE, context)
    found = [(each, users.credential(name, each)) for each in Mechanism]
    infos = [
        CredentialInfo(mechanism=mechanism.value, iterations=credential.iterations)
        for mechanism, credential in found
        if credential is not None
    ]
    if not infos:
        return _refused(name, ErrorCode.RESOURCE_NOT_FOUND, _NOBODY, context)
    return DescribedUser(user=name, error_message=NO_ERROR, credential_infos=infos)


def _refused(name: str, code: ErrorCode, text: str, context: Context) -> DescribedUser:
    context.count_error(code)
    return DescribedUser(user=name, error_code=code, error_message=text + name)
