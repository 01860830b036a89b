"""Records of share groups, beside those that a Kafka 4.3.0 wrote for one member of one group."""

import pytest

from broker.groups.classic.members import Footprint
from broker.groups.records.assigned import framed_value
from broker.groups.records.share import ShareKind, read_share_row, share_key
from broker.groups.share.loading import RememberedShares, apply_share
from protocol.errors import DecodeError

OF_MEMBER = "00027367001662574a327859383853757565786d596e34644e383977"
TOPIC = "401571ccedf34df7b06703bc1141f53c"
SAID = "17636f6e736f6c652d73686172652d636f6e73756d65720b2f3132372e302e302e310203743100"
KAFKAS = [
    (10, OF_MEMBER, f"000000{SAID}"),
    (11, "00027367", "000000000002904fa3061b48114100"),
    (13, OF_MEMBER, "00000100"),
    (12, "00027367", "000000000002010008000001a2111423e0"),
    (14, OF_MEMBER, "00000000000200000000000100"),
    (15, "00027367", f"000002{TOPIC}03743104000000000000000100000002000101" + "00"),
    (15, "00027367", f"00000102{TOPIC}03743104000000000000000100000002000100"),
    (11, "00027367", "000000000003904fa3061b48114100"),
    (13, OF_MEMBER, f"000002{TOPIC}040000000000000001000000020000"),
    (12, "00027367", "000000000003010008000001a211143884"),
    (14, OF_MEMBER, f"000000000003000000020002{TOPIC}040000000000000001000000020000"),
]  # fmt: skip
ROWS = [
    (bytes([0, kind]) + bytes.fromhex(key), bytes.fromhex(value)) for kind, key, value in KAFKAS
]


@pytest.mark.parametrize(("key", "value"), ROWS)
def test_a_record_is_read_and_written_as_kafka_writes_it(key: bytes, value: bytes) -> None:
    kind = ShareKind(key[1])
    row = read_share_row(kind, key, value)
    assert share_key(kind, row.group, row.member) == key
    assert framed_value(row.value) == value


def test_a_group_is_made_of_kafkas_records() -> None:
    groups: dict[str, RememberedShares] = {}
    for key, value in ROWS:
        apply_share(read_share_row(ShareKind(key[1]), key, value), groups)
    footprint = Footprint()
    group = groups["sg"].made("sg", footprint)
    (member,) = group.members.values()
    assert (group.epoch, group.target_epoch, member.epoch, member.previous_epoch) == (3, 3, 3, 2)
    assert (member.client_id, sorted(member.names)) == ("console-share-consumer", ["t1"])
    (assigned,) = member.assigned.items()
    assert (assigned[0].hex, assigned[1]) == (TOPIC, {0, 1, 2})
    assert group.states.made == member.assigned == group.targets[member.member_id]
    assert not group.states.making
    assert footprint.total_bytes == member.size_bytes
    for key, _ in ROWS:
        apply_share(read_share_row(ShareKind(key[1]), key, None), groups)
    assert groups == {}


def test_what_is_damaged_or_of_a_later_version_is_refused() -> None:
    key, value = ROWS[1]
    for bad in (b"", value[:5], b"\0\1" + value[2:]):
        with pytest.raises(DecodeError):
            read_share_row(ShareKind.GROUP, key, bad)
