"""Expressions that members subscribe by: they match what Python's do, and hold nobody up."""

import random
import re
import time
import tracemalloc

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


LARGE_CLASS = "[" + "".join(chr(0x100 + n) for n in range(980)) + "]"


@pytest.mark.parametrize(
    "text", [LARGE_CLASS + "{1000}", LARGE_CLASS + "{1000,}", f"(?:{LARGE_CLASS[:900]}]){{900}}"]
)
def test_many_copies_of_a_large_part_cost_no_more_than_many_of_a_small_one(text: str) -> None:
    tracemalloc.start()
    start = time.thread_time()
    try:
        pattern = topic_pattern(text)
        took, peak = time.thread_time() - start, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert took < 1.0  # 0.07 s, with the watch on memory; 8 s if each copy is read again
    assert peak < 10_000_000
    assert not pattern.matches("\u0100" * 899)
    assert pattern.matches("\u0100" * (1000 if "1000" in text else 900))


def long_names(count: int) -> list[str]:
    rng = random.Random(1)
    return ["".join(rng.choices("abcdefgh", k=200)) for _ in range(count)]


HEAVY = ["[a-h]*(a|b)[a-h]{600}", "(.*a.{120}){3}|(.*b.{200})", "(.{0,30}a.{0,30}){9}"]


@pytest.mark.parametrize("text", HEAVY)
def test_an_expression_that_takes_too_many_steps_is_given_up(text: str) -> None:
    names = long_names(1000)
    start = time.thread_time()
    with pytest.raises(PatternError, match="steps"):
        matching(text, names)
    assert time.thread_time() - start < 5.0  # about 0.3 s; minutes for all names


@pytest.mark.parametrize("text", HEAVY)
def test_what_a_matcher_remembers_is_bounded(text: str) -> None:
    pattern = topic_pattern(text)
    names = long_names(5)
    tracemalloc.start()
    try:
        for name in names:
            pattern.matches(name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


def test_ordinary_expressions_match_many_topics_in_few_steps() -> None:
    rng = random.Random(2)
    words = ["orders", "payments", "service", "event", "stream", "user", "audit", "log"]
    names = ["-".join([*rng.choices(words, k=3), str(n)]) for n in range(10_000)]
    others = "|".join(f".*{n:05}x.*" for n in range(90))
    assert matching(others, names) == frozenset()
    assert len(matching(".*(orders|payments).*-[0-9]+", names)) > 1000
