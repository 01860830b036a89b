"""The files of the time page: they ask nobody else, hold no code in their markup, and all load."""

import re

import pytest

from broker.http.timeline.time_page import ASSETS, PATHS, POLICY, TimePage

PAGE = TimePage()


def text(path: str) -> str:
    found = PAGE.answer(path)
    assert found is not None
    return found.body.decode()


def scripts() -> list[str]:
    """Every module that is imported, from the first one on."""
    found, left = ["main.js"], ["main.js"]
    while left:
        for name in re.findall(r'from "/page/([\w.]+)"', text(ASSETS + left.pop())):
            if name not in found:
                found.append(name)
                left.append(name)
    return found


@pytest.mark.parametrize("path", PATHS)
def test_the_page_is_one_and_the_same_wherever_it_is_asked_for(path: str) -> None:
    found = PAGE.answer(path)
    assert found is not None
    assert found.content_type == "text/html; charset=utf-8"
    assert found.headers["Content-Security-Policy"] == POLICY
    assert text(path) == text("/")


@pytest.mark.parametrize(
    "path", ["/page/", "/page/index.html", "/page/../front.py", "/page/time.css/", "/Page/main.js"]
)
def test_nothing_else_is_served(path: str) -> None:
    assert PAGE.answer(path) is None


def test_the_policy_allows_the_page_itself_and_nothing_more() -> None:
    sources = dict(each.split(" ", 1) for each in POLICY.split("; "))
    assert sources["default-src"] == "'none'"
    loads = {name: source for name, source in sources.items() if name.endswith("-src")}
    assert set(loads.values()) == {"'none'", "'self'"}
    assert "unsafe" not in POLICY
    assert sources["require-trusted-types-for"] == "'script'"


def test_every_file_is_used_and_asks_nobody_else() -> None:
    index = text("/")
    named = set(re.findall(r'(?:href|src)="/page/([\w.]+)"', index))
    assert named == {"icon.svg", "time.css", *scripts()}, "modules are asked for all at once"
    for name in named:
        foreign = re.findall(r"(?:https?:)?//[\w.]+\.\w+/", text(ASSETS + name))
        assert not [each for each in foreign if "www.w3.org" not in each]


def test_no_text_can_become_markup_or_code() -> None:
    index = text("/")
    assert not re.search(r"<script(?![^>]*src=)|\sstyle=|\son\w+=|javascript:", index)
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    assert not [name for name in scripts() if re.search(forbidden, text(ASSETS + name))]


def test_a_script_fits_the_head_and_says_what_it_owns() -> None:
    """As for the modules of the broker: a file fits the head, and says what it owns."""
    for name in scripts():
        lines = text(ASSETS + name).splitlines()
        assert lines[0].startswith("// ")
        assert len(lines) <= 300
