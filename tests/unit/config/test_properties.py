"""Java properties: the escapes, comments and continuations that java.util.Properties knows."""

import pytest

from config.properties import read_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", [("a", "1", 1)]),
        ("a = 1 ", [("a", "1 ", 1)]),
        ("a:1", [("a", "1", 1)]),
        ("a 1", [("a", "1", 1)]),
        ("a\t=\t1", [("a", "1", 1)]),
        ("  a  :  1", [("a", "1", 1)]),
        ("a==1", [("a", "=1", 1)]),
        ("a", [("a", "", 1)]),
        ("a=", [("a", "", 1)]),
        ("# c\n! c\n\n  \na=1 # no comment", [("a", "1 # no comment", 5)]),
        ("a=1\r\nb=2\rc=3", [("a", "1", 1), ("b", "2", 2), ("c", "3", 3)]),
        ("a=1,\\\n   2,\\\r\n\t3\nb=4", [("a", "1,2,3", 1), ("b", "4", 4)]),
        ("a=1\\\n# part of it", [("a", "1# part of it", 1)]),
        ("a=1\\", [("a", "1", 1)]),
        ("a=c:\\\\dir\\\\\nb=2", [("a", "c:\\dir\\", 1), ("b", "2", 2)]),
        ("a\\ b\\=c=1", [("a b=c", "1", 1)]),
        ("a=\\u0041\\t\\n\\q", [("a", "A\t\nq", 1)]),
        ("", []),
    ],
)
def test_text_becomes_keys_values_and_lines(
    text: str, expected: list[tuple[str, str, int]]
) -> None:
    assert list(read_properties(text)) == expected


def test_a_broken_escape_names_its_line() -> None:
    with pytest.raises(ValueError, match="line 2: "):
        list(read_properties("a=1\nb=\\u00g1"))
