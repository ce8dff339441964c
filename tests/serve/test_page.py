"""The page at / in a real browser, on the real server: what people see is what the API says."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .running import Running, started, with_options

pytest.importorskip("playwright")
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Route, expect

from tests.browsing import tab_to

from .pages import DESKTOP, OTHER, PHONE, TEXT, Open, enter, is_as_wide_as_the_screen, translated

pytestmark = pytest.mark.slow
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> big"
KEY = "a-key-of-seventeen"
VIEWS = ["flow", "heads", "head", "steps", "positions", "decoding", "compare", "health"]


@pytest.fixture(scope="module")
def slow(model: Path) -> Iterator[Running]:
    """Its engine takes its time for every text."""
    with started(with_options(model, seconds=0.7)) as running:
        yield running


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_translation_is_the_apis(server: Running, open_page: Open, width: int) -> None:
    page = open_page(server, width)
    enter(page, TEXT)
    best = translated(server, TEXT, n_best=2, tokens=True)
    assert page.locator("#translation").inner_text() == translated(server, TEXT)["text"] == best["text"]
    assert page.locator("#alternatives li > span").all_inner_texts() == [one["text"] for one in best["alternatives"]]
    assert page.locator("#heard").text_content() == best["text"]
    assert page.locator("#warnings li").count() == len(best["warnings"])
    words = page.locator(".word")
    assert words.all_inner_texts() == [one["piece"] for one in best["tokens"]["target"] if one["piece"] != "</s>"]
    unsure = [one["log_probability"] < -0.6931 for one in best["tokens"]["target"]]
    assert page.locator(".word.unsure").count() == sum(unsure[: words.count()])
    assert is_as_wide_as_the_screen(page)


def test_it_begins_with_an_example_and_follows_the_typing(server: Running, open_page: Open) -> None:
    page = open_page(server)
    expect(page.locator("#status")).to_contain_text("Done")
    assert page.input_value("#text") == "Two dogs are running on the grass."
    page.fill("#text", "")
    for letter in OTHER:
        page.keyboard.type(letter)
    expect(page.locator("#translation")).to_have_text(translated(server, OTHER)["text"])
    page.fill("#text", "")
    expect(page.locator("#translation")).to_have_text("")
    assert page.locator("#alternatives").count() == 0


def test_an_older_answer_does_not_overwrite_a_newer(server: Running, open_page: Open) -> None:
    page = open_page(server)
    enter(page, TEXT)
    held: list[Route] = []

    def hold_first(route: Route) -> None:
        if TEXT in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    page.route("**/v1/translate", hold_first)
    page.fill("#text", TEXT)
    expect(page.locator("#live.busy")).to_have_count(1)
    page.fill("#text", OTHER)
    newest = translated(server, OTHER)["text"]
    expect(page.locator("#translation")).to_have_text(newest)
    (old,) = held
    with contextlib.suppress(PlaywrightError):  # the page has given it up
        old.fulfill(body='event: partial\ndata: {"text": "old"}\n\n', content_type="text/event-stream")
    page.wait_for_timeout(200)
    assert page.inner_text("#translation") == newest
    assert page.locator("#live.busy").count() == 0


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_script_in_the_input_stays_text(slow: Running, open_page: Open, width: int) -> None:
    """The engine copies, so that it comes back as well."""
    page = open_page(slow, width)
    enter(page, HOSTILE)
    assert page.locator("#translation").inner_text() == translated(slow, HOSTILE)["text"]
    assert "<script>" in page.locator("#translation").inner_text()
    assert page.locator("main img, main script").count() == 0
    assert is_as_wide_as_the_screen(page)


def test_a_slow_engine_shows_that_it_works_and_can_be_stopped(slow: Running, open_page: Open) -> None:
    page = open_page(slow)
    enter(page, "one")
    page.fill("#text", "sleep")
    expect(page.locator("#status")).to_contain_text(re.compile(r"Translating … [1-9] s"))
    assert page.get_attribute("#translation", "aria-busy") == "true"
    page.click("#go")
    expect(page.locator("#status")).to_have_text("Stopped.")
    assert page.get_attribute("#translation", "aria-busy") == "false"
    assert page.inner_text("#go") == "Translate"


def test_the_translation_is_seen_while_it_is_made(slow: Running, open_page: Open) -> None:
    page = open_page(slow)
    enter(page, "one")
    page.fill("#text", "two three")
    page.wait_for_function(  # greedy; the beam takes as long, and what it found before still stands there
        """() => document.querySelector("#translation").ariaBusy === "true"
            && document.querySelector("#translation").textContent === "two three"
            && document.querySelector("#alternatives li").textContent.startsWith("on")""",
        polling=20,
    )
    expect(page.locator("#alternatives li").first).to_contain_text("two thre")


def test_a_lost_connection_is_said_and_recovered(server: Running, open_page: Open) -> None:
    page = open_page(server, fails=True)
    enter(page, TEXT)
    page.context.set_offline(True)
    page.fill("#text", OTHER)
    expect(page.locator("#status")).to_contain_text("connection to the server is lost")
    page.context.set_offline(False)
    expect(page.locator("#translation")).to_have_text(translated(server, OTHER)["text"])
    expect(page.locator("#status")).to_contain_text("Done")


@pytest.mark.parametrize(
    ("status", "code", "said"), [(429, "too_many_requests", "Too many requests"), (503, "queue_full", "is busy")]
)
def test_what_passes_is_told_and_tried_again(
    server: Running, open_page: Open, status: int, code: str, said: str
) -> None:
    page = open_page(server, fails=True)
    enter(page, TEXT)
    refusals = [{"status": status, "headers": {"retry-after": "1"}, "json": {"code": code, "error": ""}}]
    page.route("**/v1/translate", lambda route: route.fulfill(**refusals.pop()) if refusals else route.continue_())
    page.fill("#text", OTHER)
    expect(page.locator("#status")).to_contain_text(said)
    expect(page.locator("#translation")).to_have_text(translated(server, OTHER)["text"])


def test_what_does_not_pass_is_told_with_what_to_do(server: Running, open_page: Open) -> None:
    page = open_page(server, fails=True)
    page.fill("#text", "a " * 2_600)
    expect(page.locator("#status")).to_have_text("The text is too long. Shorten it, or translate it as a file below.")
    assert "5\u202f200 of 5\u202f000" in page.inner_text("#count")
    answer = {"code": "too_large", "error": "the body is larger than 7 bytes"}
    page.route("**/v1/translate", lambda route: route.fulfill(status=413, json=answer))
    page.fill("#text", TEXT)
    expect(page.locator("#status")).to_have_text("This is more than the server takes at once. Send less.")


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_word_opens_every_view_on_its_sentence(server: Running, open_page: Open, width: int) -> None:
    page = open_page(server, width)
    enter(page, f"{TEXT}\n\n{OTHER}")
    first, second = (translated(server, one)["text"] for one in (TEXT, OTHER))
    assert page.locator("#translation").inner_text() == f"{first}\n\n{second}"
    place = len(first.split()) + 1
    page.click(f"#word-{place}")
    expect(page.locator("#look")).to_have_attribute("aria-busy", "false")
    assert page.locator("#sources span").all_inner_texts() == [*OTHER.split(), "</s>"]
    assert page.locator("#targets span").all_inner_texts() == [*second.split(), "</s>"]
    assert page.get_attribute("#targets span:nth-child(2)", "aria-selected") == "true"
    assert page.get_attribute(f"#word-{place}", "aria-pressed") == "true"
    for view in VIEWS:
        page.click(f"#tab-{view}")
        assert page.locator("#view").text_content()
        assert is_as_wide_as_the_screen(page), view
    page.hover("#targets span:nth-child(1)")
    assert page.get_attribute(f"#word-{place - 1}", "aria-pressed") == "true"
    page.click("#close-look")
    assert page.locator("#look").is_hidden()


def test_the_views_follow_what_is_typed(server: Running, open_page: Open) -> None:
    page = open_page(server)
    enter(page, TEXT)
    page.click("#word-0")
    expect(page.locator("#sources span")).to_have_text([*TEXT.split(), "</s>"])
    page.fill("#text", OTHER)
    expect(page.locator("#sources span")).to_have_text([*OTHER.split(), "</s>"])
    other = translated(server, OTHER, n_best=2)["alternatives"][0]["text"]
    page.click("#look-0")
    expect(page.locator("#targets span")).to_have_text([*other.split(), "</s>"])
    page.click("#tab-compare")
    assert page.locator("#view .facts dd").count() == 2


def test_the_keyboard_alone_is_enough(server: Running, open_page: Open) -> None:
    page = open_page(server)
    expect(page.locator("#status")).to_contain_text("Done")
    tab_to(page, "#text")
    page.keyboard.press("Control+A")
    page.keyboard.type(OTHER)
    expected = translated(server, OTHER)["text"]
    expect(page.locator("#translation")).to_have_text(expected)
    expect(page.locator(".word")).to_have_count(len(expected.split()))
    tab_to(page, "#word-0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#word-1")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#word-2")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("document.activeElement.id") == "word-2"
    tab_to(page, "#choose-file")
    tab_to(page, "#close-look")
    page.keyboard.press("Enter")
    assert page.locator("#look").is_hidden()


def test_a_file_comes_back_with_as_many_lines(server: Running, open_page: Open, tmp_path: Path) -> None:
    lines = [TEXT, "", OTHER, "  ", *(f"big {i}" for i in range(23)), "head\r", "a"]
    source = tmp_path / "some.text.txt"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    page = open_page(server)
    page.set_input_files("#choose-file", source)
    with page.expect_download() as download:
        page.click("#download")
    assert download.value.suggested_filename == "some.text.zh.txt"
    found = Path(download.value.path()).read_bytes().decode().split("\n")
    asked = [line.rstrip("\r") for line in lines if line.strip()]
    results = iter(server.ask("POST", "/v1/translate", {"texts": asked}).json["results"])
    expected = [
        next(results)["text"] + ("\r" if line.endswith("\r") else "") if line.strip() else line for line in lines
    ]
    assert found == [*expected, ""]
    assert "27 lines translated" in page.inner_text("#file")


def test_a_file_that_is_chosen_before_the_server_has_said_what_it_has_is_kept(
    server: Running, open_page: Open, tmp_path: Path
) -> None:
    source = tmp_path / "early.txt"
    source.write_text(f"{TEXT}\n", encoding="utf-8")
    page = open_page(server)
    enter(page, OTHER)  # what it asks at first has been answered
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/v1/info", hold)
    page.reload()
    while not held:
        page.wait_for_timeout(20)
    page.set_input_files("#choose-file", source)
    held[0].continue_()
    expect(page.locator("#download")).to_have_attribute("download", "early.zh.txt")


def test_a_file_goes_on_after_a_loss_and_leaves_what_cannot_be_done(
    slow: Running, open_page: Open, tmp_path: Path
) -> None:
    source = tmp_path / "lines.txt"
    source.write_text("one\na number\nthree", encoding="utf-8")
    page = open_page(slow, fails=True)
    enter(page, "one")
    page.context.set_offline(True)
    page.set_input_files("#choose-file", source)
    expect(page.locator("#file")).to_contain_text("connection to the server is lost")
    page.context.set_offline(False)
    expect(page.locator("#file")).to_contain_text("1 lines could not be translated and stand as they were: line 2.")
    with page.expect_download() as download:
        page.click("#download")
    assert Path(download.value.path()).read_text().split("\n") == ["one", "a number", "three"]


def test_a_file_can_be_dropped_and_cancelled(slow: Running, open_page: Open) -> None:
    page = open_page(slow)
    enter(page, "one")
    dropped = page.evaluate_handle(
        "text => { const all = new DataTransfer(); all.items.add(new File([text], 'lines.txt')); return all; }",
        "\n".join(f"line {i}" for i in range(101)),
    )
    page.dispatch_event("#opening", "drop", {"dataTransfer": dropped})
    expect(page.locator("#bar")).to_have_attribute("max", "101")
    page.click("#cancel-file")
    expect(page.locator("#file")).to_contain_text("Cancelled.")
    assert page.locator("#download").count() == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"ein L\xf6we", "odd.txt is not in UTF-8."),
        (b"a\0b", "odd.txt is no text"),
        (b"a\n" + b"b " * 2_501, "Line 2 has 5002 characters; at most 5000"),
    ],
)
def test_a_file_that_is_no_text_is_told_so(
    server: Running, open_page: Open, tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "odd.txt").write_bytes(content)
    page = open_page(server)
    expect(page.locator("#status")).to_contain_text("Done")
    page.set_input_files("#choose-file", tmp_path / "odd.txt")
    expect(page.locator("#file")).to_contain_text(said)


def test_both_languages_and_themes_before_and_after_the_views(server: Running, open_page: Open) -> None:
    page = open_page(server)
    enter(page, TEXT)
    page.click("#live-language")
    assert page.inner_text("#go") == "翻译"
    assert page.get_attribute("html", "lang") == "zh-Hans"
    page.click("#word-0")
    expect(page.locator("#tab-heads")).to_have_text("全部头")
    page.click("#live-theme")
    assert page.get_attribute("html", "data-theme") == "dark"
    page.click("#live-language")
    assert page.inner_text("#go") == "Translate"
    assert page.inner_text("#tab-heads") == "Heads"
    assert page.input_value("#text") == TEXT
    chinese = open_page(server, PHONE, locale="zh-CN", color_scheme="dark")
    expect(chinese.locator("#status")).to_contain_text("用时")
    assert is_as_wide_as_the_screen(chinese)


def test_a_key_is_asked_for_and_kept_in_the_tab(model: Path, open_page: Open, tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text(f"{KEY} tester\n", encoding="utf-8")
    keys.chmod(0o600)
    with started(with_options(model, seconds=0.0, api_keys=str(keys))) as running:
        page = open_page(running, fails=True)
        expect(page.locator("#status")).to_contain_text("needs an API key")
        for wrong in ("schlüssel", "not-the-key-of-them"):
            page.fill("#key", wrong)
            page.press("#key", "Enter")
            expect(page.locator("#status")).to_contain_text("does not know this key")
            page.fill("#text", TEXT)  # nobody is asked
            assert page.input_value("#key") == wrong
        page.fill("#key", KEY)
        page.press("#key", "Enter")
        expect(page.locator("#status")).to_contain_text("Done")
        assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        page.reload()
        expect(page.locator("#status")).to_contain_text("Done")
        assert page.locator("#key").count() == 0


def test_several_models_can_be_chosen(slow: Running, open_page: Open) -> None:
    page = open_page(slow)
    expect(page.locator("#status")).to_contain_text("Done")
    (model,) = slow.ask("GET", "/v1/models").json["models"]
    info = {
        **slow.ask("GET", "/v1/info").json,
        "models": [{**model, "example": "of its own"}, {**model, "name": "other", "source": "de", "target": "fr"}],
    }
    page.route("**/v1/info", lambda route: route.fulfill(json=info))
    asked: list[str] = []

    def as_the_one(route: Route) -> None:
        body = json.loads(route.request.post_data or "")
        asked.append(body["model"])
        route.continue_(post_data={**body, "model": model["name"]})

    page.route("**/v1/translate", as_the_one)
    page.reload()
    expect(page.locator("#translation")).to_have_text("of its own")
    page.select_option("#model", "other")
    expect(page.locator("#translation-name")).to_have_text("Translation (French)")
    expect(page.locator("#translation")).to_contain_text("Zwei Hunde")
    assert asked[-1] == "other"
