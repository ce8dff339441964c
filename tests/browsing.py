"""A real browser for the tests of pages."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright")
from playwright.sync_api import Browser, Page, sync_playwright


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Playwright's own, or one on the PATH; where neither is, the test is skipped."""
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        found = own if Path(own).exists() else shutil.which("chromium") or shutil.which("google-chrome")
        if not found:
            pytest.skip("no Chromium: neither Playwright's own nor one on the PATH")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focus is there."""
    for _ in range(40):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached by Tab")
