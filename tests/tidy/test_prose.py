"""Prose of the code: docstrings open with a noun or a verb, and words of the dialect stay out."""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("protocol", "storage", "config", "broker", "pipeline", "tests/support")
OPENING = re.compile(
    r"(who|whom|whose|what|whatever|whether|how|where|which|whichever|when|whenever|why|that"
    r"|the ones? (that|who|which))\b",
    re.IGNORECASE,
)
"""Questions in the place of a noun or a verb."""
QUESTION = re.compile(r'"""\s*' + OPENING.pattern, re.IGNORECASE)
"""Modules without a match need no parsing."""
DIALECT = re.compile(
    r"\b(told|anew|doubt\w*|held|sets? aside|setting aside|remed(y|ies|ied)|met|lies"
    r"|somebody\w*|whence|whither)\b",
    re.IGNORECASE,
)
"""Say receives, again, unverified, stopped or retained, quarantined, rewrite, detected, is stored,
a client."""
CODE = re.compile(r"`[^`]*`")
API_VALUES = {"its time lies in the future", "the broker's clock is in doubt: nothing goes by time"}
"""Reasons in answers of the HTTP API: clients may compare them."""


@functools.cache
def sources() -> tuple[tuple[str, str], ...]:
    """Name and text of each module."""
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return tuple((path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths)


def documentation(tree: ast.Module) -> Iterator[ast.Constant]:
    """Docstrings of modules, classes, functions and attributes: texts that are statements."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()) as found):
                yield found


def comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Strings with a blank: docstrings, help texts, errors, events. Names and keys have none."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as found) if " " in found and found not in API_VALUES:
                yield node.lineno, found


def test_a_docstring_opens_with_a_noun_or_a_verb() -> None:
    questions = [
        f"{name}:{found.lineno} {found.value.strip().splitlines()[0]}"
        for name, text in sources()
        if QUESTION.search(text)
        for found in documentation(ast.parse(text))
        if isinstance(found.value, str) and OPENING.match(found.value.strip())
    ]
    assert questions == []


def test_words_of_the_dialect_stay_out() -> None:
    spoken = [
        f"{name}:{line} {word.group()}"
        for name, text in sources()
        if DIALECT.search(text)
        for line, prose in (*messages(ast.parse(text)), *comments(text))
        for word in DIALECT.finditer(CODE.sub("", prose))
    ]
    assert spoken == []
