"""Locks of the images: what pyproject.toml asks for, with hashes and without addresses."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "config" / "container"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUN = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
NOT_IN_IMAGE = {"cython"}
"""Compiled walkers do without it."""
ASKED = {
    "build": [*PROJECT["build-system"]["requires"], "wheel"],
    "requirements": [
        *(each for each in RUN if Requirement(each).name not in NOT_IN_IMAGE),
        *EXTRAS["security"],
    ],
    "spark": [*RUN, *EXTRAS["spark"]],
}
PIN = re.compile(r"([a-z0-9-]+)==(\S+)(?: ; [^\\]+)? \\")
HASH = re.compile(r" {4}--hash=sha256:[0-9a-f]{64}(?: \\)?")


def pins(name: str) -> dict[str, list[str]]:
    """The versions of each library; more than one where they differ by version of Python."""
    found: dict[str, list[str]] = {}
    for line in (LOCKS / f"{name}.lock").read_text().splitlines():
        if pin := PIN.fullmatch(line):
            found.setdefault(pin[1], []).append(pin[2])
    return found


@pytest.mark.parametrize("name", ASKED)
def test_each_requirement_is_locked_to_a_version_that_it_allows(name: str) -> None:
    locked = pins(name)
    wrong = [
        asked
        for asked in map(Requirement, ASKED[name])
        if not any(map(asked.specifier.contains, locked.get(canonicalize_name(asked.name), [])))
    ]
    assert not wrong, "run scripts/lock"


@pytest.mark.parametrize("name", ASKED)
def test_a_lock_is_versions_and_their_hashes_and_nothing_else(name: str) -> None:
    lines = (LOCKS / f"{name}.lock").read_text().splitlines()
    assert not [line for line in lines if not PIN.fullmatch(line) and not HASH.fullmatch(line)]
    bare = [
        line
        for line, after in zip(lines, [*lines[1:], ""], strict=True)
        if PIN.fullmatch(line) and not HASH.fullmatch(after)
    ]
    assert not bare, "a version without a hash"


def test_the_image_has_no_more_than_it_needs() -> None:
    assert not pins("requirements").keys() & {*NOT_IN_IMAGE, *pins("build")}


@pytest.mark.parametrize("dockerfile", ["Dockerfile", "config/container/spark.Dockerfile"])
def test_images_install_libraries_by_their_hashes(dockerfile: str) -> None:
    text = (ROOT / dockerfile).read_text().replace("\\\n", " ")
    installs = re.findall(r"pip (?:--python \S+ )?install ([^&\n]*)", text)
    assert len(installs) >= 3
    by_hash = [each for each in installs if "--require-hashes" in each]
    assert len(by_hash) == 2
    assert [each.split()[-1] for each in installs if each not in by_hash] == ["/tmp/wheel/*.whl"]
