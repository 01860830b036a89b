"""SaslAuthenticate of a client that is served already: refused, as by Kafka.

Tokens are taken at the door of the listener (`broker.server.doors`), before requests come here.
"""

from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.errors import ErrorCode


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes


Context = RequestContext[Services]


def handle(_: SaslAuthenticateRequest, context: Context) -> SaslAuthenticateResponse:
    """ILLEGAL_SASL_STATE (34)."""
    context.count_error(ErrorCode.ILLEGAL_SASL_STATE)
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
