"""InitProducerId: an id for an idempotent producer; one that has an id gets its next epoch.

Transactions are not served: a transactional id is refused with an error that clients take as final.
"""

from broker.context import RequestContext
from protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

NONE = -1


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    """A fresh id with epoch 0 (Kafka gives one too when the producer names an older id)."""
    try:
        _check(request)
        producer_id = await context.broker.producer_ids.allocate()
    except KafkaError as error:
        return _refusal(error.code, context)
    except StorageError:
        return _refusal(ErrorCode.KAFKA_STORAGE_ERROR, context)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _check(request: InitProducerIdRequest) -> None:
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id is not empty")
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Transactions are not served")
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Producer id and epoch go together")


def _refusal(code: int, context: RequestContext) -> InitProducerIdResponse:
    context.count_error(code)
    return InitProducerIdResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
