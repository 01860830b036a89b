"""A real Chromium without a window, for tests of pages: the one on the machine, none downloaded.

What a page must never do is watched for on every page: errors on its console, among them breaches
of its own policy, exceptions, requests to anybody else, dialogs.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE_MS = 45_000
SHOWN = 1500
"""Characters of a page that go into a failure."""


def missing() -> str | None:
    """The reason why no browser can be had here; None when there is one."""
    if find_spec("playwright") is None:
        return "playwright is not installed"
    if _chromium() is None:
        return "there is no Chromium on this machine (Debian: apt-get install chromium)"
    return None


@contextmanager
def chromium() -> Iterator["Browser"]:
    """A running browser."""
    from playwright.sync_api import sync_playwright

    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=[*OPTIONS, *sandbox])
        yield browser
        browser.close()


@contextmanager
def watched_page(browser: "Browser", origin: str, **how: Any) -> Iterator["Page"]:
    """A page in a context of its own; at the end it must have done nothing that it must not.

    `origin`: whom it may ask. `how`: as `Browser.new_context` has it, such as `color_scheme`.
    """
    context = browser.new_context(**how)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    seen: list[str] = []
    page.on("pageerror", lambda error: seen.append(f"exception: {error}"))
    page.on("console", lambda said: seen.append(said.text) if said.type == "error" else None)

    def dismiss(dialog: Any) -> None:
        seen.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(origin) else seen.append(f"asks {asked.url}"),
    )
    try:
        yield page
    except Exception as error:
        with suppress(Exception):  # the page may be gone
            shown = page.locator("body").inner_text(timeout=1000)
            error.add_note(f"The console said {seen}; the page shows: {shown[:SHOWN]}")
        raise
    finally:
        context.close()
    assert not [each for each in seen if not _is_a_broken_line(each)]


def until(page: "Page", truth: str) -> None:
    """Waits until an expression holds. (The page's policy forbids what Playwright's own does.)"""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not page.evaluate(truth):
        assert time.monotonic() < deadline, truth
        page.wait_for_timeout(50)


def _is_a_broken_line(said: str) -> bool:
    """True for the browser's own message about an answer that is no 200, or does not come."""
    return said.startswith("Failed to load resource")


def _chromium() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)
