"""What only a live page can do: force another word, switch heads off, and continue a text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_model import write_generator

from .running import Running, real, started

pytest.importorskip("playwright")
from playwright.sync_api import Page, expect

from tests.browsing import tab_to

from .pages import DESKTOP, OTHER, PHONE, TEXT, Open, enter, is_as_wide_as_the_screen

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    writer = write_generator(tmp_path_factory.mktemp("writes") / "writer")
    with started(real(model, writer)) as running:
        yield running


def inspected(running: Running, text: str, **fields: Any) -> dict[str, Any]:
    return running.ask("POST", "/v1/inspect", {"text": text, **fields}).json["trace"]


def look(page: Page, view: str) -> None:
    """At the first word of the translation."""
    page.click("#word-0")
    expect(page.locator("#look")).to_have_attribute("aria-busy", "false")
    page.click(f"#tab-{view}")


def says(page: Page, text: str) -> None:
    """The views look at this translation."""
    expect(page.locator("#targets span")).to_have_text([*text.split(), "</s>"])
    expect(page.locator("#look")).to_have_attribute("aria-busy", "false")


def others(step: dict[str, Any]) -> list[tuple[int, str]]:
    found = zip([id for id, _ in step["top"]], step["top_text"], strict=True)
    return [(id, text) for id, text in found if id != step["chosen"] and text not in ("<pad>", "<s>")]


def test_a_view_stays_chosen_if_a_trace_arrives_at_once(server: Running, open_page: Open) -> None:
    page = open_page(server, DESKTOP)
    enter(page, OTHER)
    look(page, "flow")
    page.evaluate("CH.set({ view: 'decoding' }); CH.show([...CH.traces]);")
    assert page.get_attribute("#tab-decoding", "aria-selected") == "true"


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_another_word_is_forced_and_the_rest_searched_again(server: Running, open_page: Open, width: int) -> None:
    page = open_page(server, width)
    enter(page, OTHER)
    look(page, "decoding")
    before = inspected(server, OTHER)
    page.click("#next-step")
    step = before["steps"][1]
    assert page.locator("#force button").all_inner_texts() == [text for _, text in others(step)]
    id, word = next((id, text) for id, text in others(step) if text != "</s>")
    page.click(f"#force button:text-is('{word}')")
    after = inspected(server, OTHER, prefix=[before["steps"][0]["chosen"], id])
    says(page, after["target"]["text"])
    assert after["target"]["text"].split()[1] == word
    assert after["target"]["begun"] == 2
    told = page.locator("#force .told")
    expect(told).to_contain_text(f"Instead of {before['target']['text']} it now says {after['target']['text']}.")
    assert page.inner_text("#translation") == before["target"]["text"]  # what was translated is not touched
    assert is_as_wide_as_the_screen(page)
    page.click("#what-if-back")
    says(page, before["target"]["text"])
    assert page.locator("#force .told").count() == 0


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_heads_are_ticked_off_and_the_sentence_translated_without_them(
    server: Running, open_page: Open, width: int
) -> None:
    page = open_page(server, width)
    enter(page, TEXT)
    look(page, "heads")
    assert page.locator("#without").is_disabled()
    off = [["cross", 0, head] for head in range(7)]
    for _, layer, head in off:
        page.check(f"#off-cross-{layer}-{head}")
    page.click("#heads-kind-decoder")
    page.check("#off-decoder-0-3")
    expect(page.locator("#without")).to_have_text("Translate without 8 heads")
    page.click("#without")
    after = inspected(server, TEXT, off=[*off, ["decoder", 0, 3]])
    says(page, after["target"]["text"])
    expect(page.locator("#switch-off .told")).to_contain_text("Switched off: ")
    assert page.is_checked("#off-decoder-0-3")
    assert is_as_wide_as_the_screen(page)
    page.click("#tab-compare")
    assert page.locator("#view .facts dd").count() == 2
    page.click("#tab-heads")
    page.click("#all-on")
    assert page.locator("#switch-off :checked").count() == 0


def test_the_keyboard_alone_is_enough_to_change_what_is_looked_at(server: Running, open_page: Open) -> None:
    page = open_page(server, locale="zh-CN")
    enter(page, OTHER)
    look(page, "decoding")
    expect(page.locator("#force")).to_contain_text("在这里改写成")
    tab_to(page, "#force-0")
    page.keyboard.press("Enter")
    expect(page.locator("#force .told")).to_contain_text("规定它以")
    tab_to(page, "#what-if-back")
    page.keyboard.press("Enter")
    expect(page.locator("#force .told")).to_have_count(0)
    page.click("#tab-heads")
    tab_to(page, "#off-cross-0-0")
    page.keyboard.press("Space")
    tab_to(page, "#without")
    page.keyboard.press("Enter")
    expect(page.locator("#switch-off .told")).to_contain_text("已关掉")


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_text_goes_on(server: Running, open_page: Open, width: int) -> None:
    page = open_page(server, width)
    enter(page, TEXT)
    page.select_option("#model", "writer")
    expect(page.locator("#go")).to_have_text("Continue")
    assert page.locator("#file").is_hidden()
    assert page.inner_text("#translation") == ""
    page.fill("#text", "abc head")
    page.select_option("#temperature", "0")
    page.select_option("#length", "30")
    page.press("#text", "Control+Enter")
    asked = {"prompt": "abc head", "temperature": 0, "length": 30}
    (expected,) = server.ask("POST", "/v1/generate", asked).json["results"]
    expect(page.locator("#translation")).to_have_attribute("data-of", "abc head")
    assert page.inner_text("#translation") == expected["text"]
    assert page.inner_text("#translation .given") == "abc head"
    assert is_as_wide_as_the_screen(page)
    page.click("#look-inside")
    says(page, expected["text"])
    page.click("#tab-heads")
    assert page.locator("#view input[type=checkbox][id^=off-decoder]").count() == 7
    page.select_option("#model", "tiny")
    expect(page.locator("#status")).to_contain_text("Done")
    assert page.inner_text("#go") == "Translate"
