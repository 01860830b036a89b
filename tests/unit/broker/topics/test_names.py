"""Names of topics: Kafka's rules, which are also what keeps a hostile name inside the directory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.topics.names import (
    check_name,
    collision_key,
    find_collision,
    internal_topics,
)
from config.broker import BrokerConfig
from protocol.errors import ErrorCode, KafkaError
from storage.files.topic_name import fault_in_name


@pytest.mark.parametrize("name", ["orders", "a", "A.b_c-9", "...", "a" * 249, "-", "_"])
def test_legal_names(name: str) -> None:
    assert fault_in_name(name) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "empty string"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a" * 250, "max allowed length 249"),
        ("a/b", "ASCII alphanumerics"),
        ("a b", "ASCII alphanumerics"),
        ("größe", "ASCII alphanumerics"),
        ("a\n", "ASCII alphanumerics"),
        ("a\x00", "ASCII alphanumerics"),
        ("٣", "ASCII alphanumerics"),
    ],
)
def test_illegal_names_say_why(name: str, words: str) -> None:
    with pytest.raises(KafkaError, match=words) as refusal:
        check_name(name)
    assert refusal.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


@given(st.text(max_size=300))
def test_no_legal_name_leaves_the_directory(name: str) -> None:
    if fault_in_name(name) is None:
        assert "/" not in name
        assert "\x00" not in name
        assert f"{name}-0" not in {".", "..", "-0"}


@pytest.mark.parametrize(
    ("name", "existing", "found"),
    [
        ("a.b", ["a_b"], "a_b"),
        ("a_b", ["x", "a.b"], "a.b"),
        ("a.b.c", ["a_b.c"], "a_b.c"),
        ("ab", ["a.b"], None),
        ("A.b", ["a_b"], None),
        ("a.b", [], None),
    ],
)
def test_dot_and_underscore_collide_and_case_does_not(
    name: str, existing: list[str], found: str | None
) -> None:
    assert find_collision(name, {collision_key(each): each for each in existing}) == found


def test_internal_topics_are_known_by_name() -> None:
    of_kafka = internal_topics(BrokerConfig())
    assert "__consumer_offsets" in of_kafka
    audits = BrokerConfig(horolog_audit_topic="a", horolog_security_audit_topic="b")
    assert internal_topics(audits) - of_kafka == {"a", "b"}
