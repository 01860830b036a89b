"""Laws that hold for any text and any sequence of changes, not only for the examples."""

import contextlib
import json

from hypothesis import example, given
from hypothesis import strategies as st

from config.alter import Alteration, Operation
from config.errors import ConfigError
from config.names import BROKER_KEYS, TOPIC_KEYS, broker_name, topic_name
from config.properties import read_properties
from config.sources import load
from config.store import ConfigStore
from config.topic import TopicConfig
from config.yaml_text import read_yaml

MARKS = st.text(alphabet=st.sampled_from("ab.:=#! \\u0041\n\r\t-[]{},&*'\"\x00é|>?%@"), max_size=40)


@given(MARKS | st.text(max_size=40))
@example("\\")
@example("\\u")
def test_any_text_is_properties_or_a_value_error(text: str) -> None:
    try:
        for name, _, line in read_properties(text):
            assert isinstance(name, str)
            assert 1 <= line <= text.count("\n") + text.count("\r") + 1
    except ValueError as error:
        assert str(error).startswith("line ")  # noqa: PT017 - or it passes


@given(MARKS | st.text(max_size=40))
@example("!!python/object/apply:os.system [ls]: 1")
@example("a: !!binary x")
@example("--- a: 1\n--- b")
def test_any_text_is_yaml_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert all(isinstance(name, str) for name, _, _ in read_yaml(text))


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=5))
def test_what_java_would_escape_is_read_back(settings: dict[str, str]) -> None:
    text = "\n".join(f"{_escaped(name)}={_escaped(value)}" for name, value in settings.items())
    assert [(name, value) for name, value, _ in read_properties(text)] == list(settings.items())


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2))


SPELLINGS = sorted(
    {
        *((topic_name, each.name) for key in TOPIC_KEYS for each in key.on_topic),
        *((broker_name, each.name) for k in (*TOPIC_KEYS, *BROKER_KEYS) for each in k.on_broker),
    },
    key=lambda pair: pair[1],
)
VALUES = st.one_of(
    st.integers(-(2**63) - 1, 2**63).map(str),
    st.sampled_from(["", "true", "delete", "compact,delete", "gzip", "1h", "2MiB", "A://h:1"]),
    st.text(max_size=5),
)


@given(st.sampled_from(SPELLINGS), VALUES)
def test_what_is_reported_means_the_same_when_it_is_set_again(spelling, text: str) -> None:
    find, name = spelling
    try:
        value, reported = find(name).parse(text)
    except ConfigError as refused:
        assert refused.key == name  # noqa: PT017 - or it is accepted
        return
    assert find(name).parse(reported) == (value, reported)


@given(st.sampled_from(["KAFKA_", "HOROLOG_"]), st.text("ABC_09", max_size=12), VALUES)
def test_any_variable_is_a_setting_or_a_refusal(prefix: str, name: str, text: str) -> None:
    try:
        load(environment={prefix + name: text})
    except ConfigError as refused:
        assert prefix + name in str(refused)  # noqa: PT017 - or it is accepted


LAYERS = ("static", "", "1", "t")
STEPS = st.lists(st.tuples(st.sampled_from(LAYERS[1:]), st.none() | st.integers(1, 9)), max_size=12)


@given(st.none() | st.integers(1, 9), STEPS)
def test_the_value_in_force_is_the_highest_one_that_is_set(
    static: int | None, steps: list[tuple[str, int | None]]
) -> None:
    model: dict[str, int | None] = dict.fromkeys(LAYERS)
    model["static"] = static
    environment = {} if static is None else {"KAFKA_LOG_ROLL_MS": str(static)}
    store = ConfigStore(load(environment=environment).layers)
    for layer, value in steps:
        model[layer] = value
        operation = Operation.DELETE if value is None else Operation.SET
        text = None if value is None else str(value)
        if layer == "t":
            change = store.prepare_topic_alteration(
                "t", [Alteration("segment.ms", operation, text)]
            )
        else:
            change = store.prepare_broker_alteration(
                layer, [Alteration("log.roll.ms", operation, text)]
            )
        store.commit(change)
    everywhere = [model[layer] for layer in ("1", "", "static")]
    default = TopicConfig().segment_ms
    expected = next((value for value in everywhere if value is not None), default)
    assert store.topic_defaults.segment_ms == expected
    assert store.topic_config("t").segment_ms == (model["t"] or expected)
    again = ConfigStore(load(environment=environment).layers)
    again.restore(store.serialise())
    assert again.topic_config("t") == store.topic_config("t")
    pinned = ConfigStore(load(flags=["log.roll.ms=77"], environment=environment).layers)
    pinned.restore(store.serialise())
    assert pinned.topic_defaults.segment_ms == 77
    assert pinned.topic_config("t").segment_ms == (model["t"] or 77)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["version", "topics", "brokers", "t"]), inner)
        ),
        max_leaves=8,
    )
)
def test_stored_settings_are_understood_or_refused(content) -> None:
    store = ConfigStore()
    try:
        store.restore(json.dumps(content))
    except ConfigError:
        assert store.topic_config("t") == TopicConfig()
