"""No string that a client sends is longer than Kafka's own: 32767 bytes, also in compact form."""

import pytest

from protocol.apis.join_group import JoinGroupRequest
from protocol.codec import decode, encode_bytes, interpret
from protocol.errors import DecodeError

LONGEST = 32_767


@pytest.mark.parametrize("read", [decode, interpret])
@pytest.mark.parametrize("name", ["protocol_type", "group_instance_id"])
def test_the_longest_string_is_read_and_a_longer_one_refused(read: object, name: str) -> None:
    assert callable(read)
    longest = encode_bytes(JoinGroupRequest(**{name: "x" * LONGEST}), 9)
    assert getattr(read(JoinGroupRequest, 9, memoryview(longest)), name) == "x" * LONGEST
    longer = encode_bytes(JoinGroupRequest(**{name: "x" * (LONGEST + 1)}), 9)
    with pytest.raises(DecodeError, match=f"{name}: a string of more than 32767 bytes"):
        read(JoinGroupRequest, 9, memoryview(longer))
