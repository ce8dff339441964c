"""The page at / in a real browser, for the tests of it; `open_page` and `browser` are in conftest."""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from playwright.sync_api import Browser, Page, expect

from .running import Running

DESKTOP, PHONE = 1280, 390
TEXT, OTHER = "abc head a", "bad cabbage j dig"
BY_BROWSER = re.compile("Failed to load resource")  # what the browser says of a request that failed as planned
Open = Callable[..., Page]
expect.set_options(timeout=30_000)  # the machine may be busy


@contextlib.contextmanager
def opener(browser: Browser) -> Iterator[Open]:
    """What opens the page of a server; afterwards nothing complained, and no other host was asked for anything."""
    said: list[str] = []
    asked: set[str] = set()
    hosts: set[str] = set()
    contexts = []

    def open_at(running: Running, width: int = DESKTOP, at: str = "", fails: bool = False, **more: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, **{"locale": "en-GB", **more})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda one: None if fails and BY_BROWSER.match(one.text) else said.append(one.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.add("/".join(request.url.split("/")[:3])))
        hosts.add(running.url)
        page.goto(f"{running.url}/#{at}")
        return page

    try:
        yield open_at
    finally:
        for context in contexts:
            context.close()
    assert said == []
    assert {host for host in asked if not host.startswith("blob:")} == hosts


def translated(running: Running, text: str, **fields: Any) -> dict[str, Any]:
    (result,) = running.ask("POST", "/v1/translate", {"texts": [text], **fields}).json["results"]
    return result


def enter(page: Page, text: str) -> None:
    """Write it and wait until it has been translated."""
    page.fill("#text", text)
    expect(page.locator("#translation")).to_have_attribute("data-of", text)


def is_as_wide_as_the_screen(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
