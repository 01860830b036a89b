"""CreateAcls: adds entries of access control; durable when it is answered (KIP-140)."""

from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.wire_error import wire_error
from broker.security.acl import Acl
from broker.security.acl_requests import acl_of, check_count, check_is_on
from broker.security.authority import Authority
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from protocol.errors import KafkaError
from storage.errors import StorageError

Judged = Acl | KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    authority: Authority


Context = RequestContext[Services]


async def handle(request: CreateAclsRequest, context: Context) -> CreateAclsResponse:
    """One code for each entry; one that is there already is no mistake."""
    try:
        context.require(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        check_is_on(context.services.authority)
        check_count(len(request.creations), "entries")
        judged = [_judged(each) for each in request.creations]
        await context.services.authority.add([each for each in judged if isinstance(each, Acl)])
    except KafkaError as error:
        judged = [error] * len(request.creations)
    except StorageError as error:
        judged = [wire_error(error)] * len(request.creations)
    return CreateAclsResponse(results=[_result(each, context) for each in judged])


def _judged(creation: AclCreation) -> Judged:
    try:
        return acl_of(creation)
    except KafkaError as error:
        return error


def _result(judged: Judged, context: Context) -> AclCreationResult:
    if isinstance(judged, Acl):
        return AclCreationResult()
    context.count_error(judged.code)
    return AclCreationResult(error_code=judged.code, error_message=judged.message)
