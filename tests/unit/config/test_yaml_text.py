"""YAML: flat and nested names, scalars as written, mistakes with their line."""

import pytest

from config.yaml_text import read_yaml


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log.retention.ms: 1h", [("log.retention.ms", "1h", 1)]),
        (
            "log:\n  retention:\n    ms: 5\n    bytes: 6\n",
            [("log.retention.ms", "5", 3), ("log.retention.bytes", "6", 4)],
        ),
        ("a: {b.c: 1}", [("a.b.c", "1", 1)]),
        ("a:\n- x\n- y\n", [("a", "x,y", 1)]),
        ("a: yes\nb: 010\nc: 1_000", [("a", "yes", 1), ("b", "010", 2), ("c", "1_000", 3)]),
        ("a: 'null'\nb: ''", [("a", "null", 1), ("b", "", 2)]),
        ("# nothing\n", []),
        ("", []),
    ],
)
def test_text_becomes_keys_values_and_lines(
    text: str, expected: list[tuple[str, str, int]]
) -> None:
    assert list(read_yaml(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1", "line 2"),
        ("a: 1\nb:\n", "line 2: b has no value"),
        ("- a\n- b\n", "line 1: the file must be a mapping"),
        ("just words", "line 1: the file must be a mapping"),
        ("a: [{b: 1}]", "line 1: a holds a mapping"),
        ("? [a]\n: 1", "line 1: a key must be a name"),
        ("a: &x 1\nb: *x", "line 2: aliases"),
        ("a: \x01", "."),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(read_yaml(text))
