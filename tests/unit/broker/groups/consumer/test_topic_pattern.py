"""Expressions that members subscribe by: they match what Python's do, and hold nobody up."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.consumer.automaton import PatternError
from broker.groups.consumer.regex import matching, topic_pattern

NAMES = st.text("abcAB01._-", max_size=8)


def pieces(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeat = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{1,}", "*?", "+?", "??"])
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, repeat).map(lambda two: f"({two[0]}){two[1]}"),
        inner.map(lambda one: f"(?i:{one})"),
    )


ATOMS = st.sampled_from(
    ["a", "b", "A", "0", ".", r"\.", "-", "_", "[ab]", "[^a]", "[a-c0-9]", r"\d", r"\w", r"\W",
     r"[\d_]", r"[^\d]", "^", "$", "(?P<n>a)", ""]
)  # fmt: skip


@given(st.recursive(ATOMS, pieces, max_leaves=6), NAMES)
def test_it_matches_what_python_matches(text: str, name: str) -> None:
    if text.count("(?P<n>") > 1:
        text = text.replace("?P<n>", "")
    theirs = re.compile(text.replace("$", r"\Z"), re.ASCII).fullmatch(name)
    assert topic_pattern(text).matches(name) is (theirs is not None), (text, name)


@pytest.mark.parametrize(
    ("text", "matching_names"),
    [
        ("orders-.*", {"orders-1", "orders-"}),
        ("(?i)ORDERS-[[:digit:]]", {"orders-1"}),
        (r"\Qa.b\E", {"a.b"}),
        (r"[[:alpha:]]+", {"orders", "a"}),
        (r"a\x2Eb", {"a.b"}),
        ("[]a]", {"a"}),
        ("a{,2}", set()),
        ("", set()),
        ("orders-1|a.b", {"orders-1", "a.b"}),
        ("order", set()),
    ],
)
def test_the_whole_name_has_to_match(text: str, matching_names: set[str]) -> None:
    names = {"orders-1", "orders-", "orders", "a.b", "a"}
    assert matching(text, names) == matching_names


@pytest.mark.parametrize(
    "text",
    [
        "(", ")", "[", "[a", "*", "a**", "a{2,1}", "a{1001}", "(?=a)", "(?<!a)", r"\1", r"\y", "\\",
        "[z-a]", "[[:what:]]", "x" * 1001, "(" * 60 + ")" * 60, "(a{100}){100}", r"\xg0", "(?P<n",
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(PatternError):
        topic_pattern(text)


@pytest.mark.parametrize("text", ["(a*)*b", "(a|aa)+b", "(.*a){12}c", "((a{0,9}){0,9}){0,9}b"])
def test_no_expression_takes_more_than_linear_time(text: str) -> None:
    pattern = topic_pattern(text)
    start = time.thread_time()
    assert not pattern.matches("a" * 60)
    short = time.thread_time() - start
    start = time.thread_time()
    assert not pattern.matches("a" * 240)
    assert time.thread_time() - start < 50 * short + 1.0  # going back would take ages
