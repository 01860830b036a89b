"""SaslHandshake: refuses SASL, which this listener does not have.

The answer is Kafka's on a PLAINTEXT listener: ILLEGAL_SASL_STATE (34), and no mechanism to choose
from. The client's error message then names the settings of both sides, which a closed
connection would not.
"""

from typing import NamedTuple

from broker.runtime.event_log import event
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.errors import ErrorCode


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes


Context = RequestContext[Services]


def handle(request: SaslHandshakeRequest, context: Context) -> SaslHandshakeResponse:
    """Refused, with a line for the operator."""
    context.count_error(ErrorCode.ILLEGAL_SASL_STATE)
    event(
        "no_sasl_here",
        "warning",
        peer=context.peer,
        client_id=context.client_id,
        listener=context.listener_name,
        mechanism=request.mechanism,
    )
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
