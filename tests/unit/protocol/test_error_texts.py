"""Texts of errors fit into every answer, whatever the client's own words in them are."""

from protocol.apis.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from protocol.codec import encode_bytes
from protocol.errors import ErrorCode, KafkaError


def test_a_text_with_long_words_of_a_client_fits_where_lengths_have_16_bits() -> None:
    error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{'€' * 32_767} is no name")
    answer = ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(partition_result=[PartitionResult(error_message=error.message)])
        ]
    )
    told = encode_bytes(answer, 0)
    assert len(told) < 32_768
    assert error.message.endswith("...")
