"""SaslHandshake: this listener has no SASL, and a client that wants some is told so.

The answer is Kafka's on a PLAINTEXT listener: ILLEGAL_SASL_STATE (34), and no mechanism to choose
from. What a client makes of it names the two sides' settings, which a closed connection does not.
"""

from broker.requests.services import HandlerContext
from broker.runtime.event_log import event
from protocol.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from protocol.errors import ErrorCode


def handle(request: SaslHandshakeRequest, context: HandlerContext) -> SaslHandshakeResponse:
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
