"""The page in a real browser: what was planted is read back from what people see, and nothing else is asked for."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearhead.inspection.report import report
from tests.inspection.planted import HEAD, LAYER, PLANTED, SOURCE, TARGET, packed, planted_trace, rnn_trace, unpacked

pytest.importorskip("playwright")
from playwright.sync_api import Browser, Page

from tests.browsing import chromium, tab_to

pytestmark = pytest.mark.slow

VIEWS = ["flow", "heads", "head", "steps", "positions", "decoding", "compare", "health"]
ENGLISH = [f"word{i}" for i in range(20)]
GERMAN = [f"Wörtchen{i}" for i in range(20)]
HOSTILE = "<img src=x onerror=alert(1)>"
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open a report of traces from its file; afterwards nothing was asked of the network and nothing complained."""
    said: list[str] = []
    asked: list[str] = []
    contexts = []

    def open_report(traces: list[dict[str, Any]], at: str = "", width: int = 1280, colours: Any = "light") -> Page:
        path = tmp_path / "report.html"
        path.write_text(report(traces), encoding="utf-8")
        contexts.append(
            browser.new_context(viewport={"width": width, "height": 800}, color_scheme=colours, locale="en-GB")
        )
        page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url.split("#")[0]))
        page.goto(f"{path.as_uri()}#{at}")
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert said == []
    assert {url for url in asked if not url.startswith("blob:")} == {(tmp_path / "report.html").as_uri()}


def rows_of(cells: list[tuple[int, int, float]]) -> list[int]:
    """In each row, the column of the largest value."""
    best: dict[int, tuple[float, int]] = {}
    for row, column, value in cells:
        best[row] = max(best.get(row, (-1.0, -1)), (value, column))
    return [best[row][1] for row in sorted(best)]


def cells_of_table(page: Page, name: str) -> list[tuple[int, int, float]]:
    page.focus(f"#{name}")
    cells = page.eval_on_selector_all(f"#{name} td[role=gridcell]", "all => all.map(one => [one.id, one.textContent])")
    return [(int(i.split("-")[-2]), int(i.split("-")[-1]), float(text)) for i, text in cells]


def difference(page: Page, selector: str) -> float:
    return float(page.get_attribute(selector, "data-difference") or "nan")


def test_ribbons_join_what_was_planted(open_page: Open) -> None:
    page = open_page([planted_trace()])
    bands = page.eval_on_selector_all(
        ".ribbons .band", "all => all.map(one => ({...one.dataset, d: one.getAttribute('d')}))"
    )
    assert rows_of([(int(one["query"]), int(one["key"]), float(one["weight"])) for one in bands]) == PLANTED
    boxes = "all => all.map(one => { const b = one.getBoundingClientRect(); return [b.left, b.right]; })"
    left = page.locator(".ribbons").bounding_box()
    assert left is not None
    for one in bands:
        numbers = [float(x) for x in one["d"].replace("M", "").replace("C", ",").split(",")]
        (start, end), (key_start, key_end) = (
            page.eval_on_selector_all(f"#{row} span", boxes)[int(one[side])]
            for row, side in (("targets", "query"), ("sources", "key"))
        )
        assert start < numbers[0] + left["x"] < end
        assert key_start < numbers[-2] + left["x"] < key_end


def test_the_table_twin_holds_what_was_planted(open_page: Open) -> None:
    page = open_page([planted_trace()], "view=head")
    cells = cells_of_table(page, "head-table")
    assert rows_of(cells) == PLANTED
    trace = planted_trace()
    exact = unpacked(next(a for a in trace["attention"] if (a["kind"], a["layer"]) == ("cross", LAYER)))[HEAD]
    np.testing.assert_allclose([value for *_, value in cells], exact.ravel(), atol=5e-4)
    assert page.locator("#head-table tbody th").all_text_contents() == [*TARGET, "</s>"]
    assert page.locator("#head-table thead th").all_text_contents() == [*SOURCE, "</s>"]


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_the_matrix_is_darkest_where_it_was_planted(open_page: Open, colours: str) -> None:
    page = open_page([planted_trace()], "view=head", colours=colours)
    page.wait_for_selector("canvas[data-left]")
    lightness = page.evaluate("""() => {
        const canvas = document.querySelector("#view canvas"), {left, top, cellWidth, cellHeight} = canvas.dataset;
        const {width, height} = canvas, {data} = canvas.getContext("2d").getImageData(0, 0, width, height), cells = [];
        for (let r = 0; r < 7; r++) for (let c = 0; c < 11; c++) {
            const x = Math.round(Number(left) + (c + 0.15) * cellWidth);
            const y = Math.round(Number(top) + (r + 0.2) * cellHeight);
            const [red, green, blue] = data.subarray(4 * (y * width + x));
            cells.push([r, c, red + green + blue]);
        }
        return cells;
    }""")
    sign = -1 if colours == "light" else 1
    assert rows_of([(r, c, 1000 + sign * value) for r, c, value in lightness]) == PLANTED


def test_the_sentence_follows_the_focus(open_page: Open) -> None:
    page = open_page([planted_trace()])
    for row, key in enumerate(PLANTED):
        page.hover(f"#targets span:nth-child({row + 1})")
        said = page.locator("#saying b").all_text_contents()
        assert said[:2] == [[*TARGET, "</s>"][row], [*SOURCE, "</s>"][key]]
    page.hover(f"#sources span:nth-child({PLANTED[2] + 1})")
    assert page.locator("#saying b").all_text_contents() == [SOURCE[PLANTED[2]], TARGET[2]]
    assert "layer 2, head 1" in page.inner_text("#saying")


def test_the_exported_figure_holds_what_was_planted(open_page: Open, tmp_path: Path) -> None:
    page = open_page([planted_trace()], "view=head")
    with page.expect_download() as download:
        page.keyboard.press("e")
    assert download.value.suggested_filename == "cross-layer-2-head-1.svg"
    download.value.save_as(tmp_path / "head.svg")
    figure = ElementTree.parse(tmp_path / "head.svg")
    cells = [one.attrib for one in figure.iter("{http://www.w3.org/2000/svg}rect") if "data-query" in one.attrib]
    assert rows_of([(int(a["data-query"]), int(a["data-key"]), float(a["data-weight"])) for a in cells]) == PLANTED


def test_the_keyboard_alone_reaches_every_view(open_page: Open) -> None:
    page = open_page([planted_trace(), planted_trace(seed=2)])
    tab_to(page, "[role=tab]")
    seen = []
    for _ in VIEWS:
        seen.append(page.evaluate("document.activeElement.id.slice(4)"))
        assert page.inner_text("#view h2") == page.inner_text(f"#tab-{seen[-1]}")
        page.keyboard.press("ArrowRight")
    assert seen == VIEWS


def test_arrows_move_inside_the_matrix_and_enter_picks_rows(open_page: Open) -> None:
    page = open_page([planted_trace()], "view=head")
    tab_to(page, "#head-table")
    for key in ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"]:
        page.keyboard.press(key)
    assert page.get_attribute("#head-table", "aria-activedescendant") == "head-table-2-3"
    assert page.inner_text("#head-value").startswith("3 reads the: 0.0")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    said = page.locator("#picked-sum b").all_text_contents()
    assert set(said[:2]) == {SOURCE[PLANTED[2]], SOURCE[PLANTED[3]]}
    page.wait_for_url("**picked=3%2C4**")


def test_single_keys(open_page: Open) -> None:
    page = open_page([planted_trace()])

    def press(key: str, address: str) -> None:
        page.keyboard.press(key)
        page.wait_for_function("address => location.hash.slice(1) === address", arg=address)

    press("]", "layer=3")
    press("[", "")
    press(".", "head=2")
    press(",", "")
    press("1", "kind=encoder&side=source")
    press("2", "kind=decoder")
    press("3", "")
    press(" ", "step=2")
    press("m", "view=head&step=2&mode=lines")
    press("s", "view=steps&step=2&mode=lines")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()


def test_six_steps_are_the_models(open_page: Open) -> None:
    trace = planted_trace()
    page = open_page([trace], "view=steps")
    for which, detail in enumerate(trace["head_detail"]):
        page.select_option("#steps-head", str(which))
        for query in range(detail["q"]["shape"][0]):
            page.select_option("#steps-query", str(query))
            assert difference(page, "#steps-most") <= 1e-5
            out = [float(text) for text in page.locator("#step-6 .vector span").all_text_contents()]
            np.testing.assert_allclose(out, unpacked(detail["out"])[query, :8], atol=6e-3)
            weights = page.locator("#step-5 .bars li > :last-child").all_text_contents()
            assert weights.count("masked") == (len(weights) - query - 1 if detail["mask"] else 0)
            assert abs(sum(float(text) for text in weights if text != "masked") - 1) < 0.01


def test_wrong_vectors_are_said_to_be_wrong(open_page: Open) -> None:
    trace = planted_trace()
    trace["head_detail"][0]["out"] = trace["head_detail"][0]["q"]
    page = open_page([trace], "view=steps")
    assert difference(page, "#step-6 p.bad") > 0.1
    assert "✗" in page.inner_text("#steps-most")


def test_without_the_division_the_softmax_is_sharper(open_page: Open) -> None:
    page = open_page([planted_trace()], "view=steps&kind=encoder&layer=1&head=2")

    def most() -> float:
        return max(float(text) for text in page.locator("#step-5 .bars li > :last-child").all_text_contents())

    before = most()
    page.check("#unscaled")
    assert most() > before


def test_hidden_tokens_words_and_scale(open_page: Open) -> None:
    page = open_page([planted_trace()], "view=head&layer=1&head=1")
    page.check("#hide")
    cells = cells_of_table(page, "head-table")
    sums = np.zeros(6)
    for row, _, value in cells:
        sums[row] += value
    np.testing.assert_allclose(sums, 1, atol=6e-3)
    assert "sum to 1 again" in page.inner_text("#view")
    page.check("#words")
    page.focus("#head-table")
    assert page.locator("#head-table thead th").all_text_contents() == ["we", "met", "on", "the", "4th", *SOURCE[6:]]


def test_a_link_shows_the_same_and_nonsense_is_left_alone(open_page: Open) -> None:
    page = open_page(
        [planted_trace()], "view=head&kind=decoder&layer=3&head=2&step=4&key=2&mode=lines&lang=zh&theme=dark"
    )
    assert page.inner_text("#view .lead").startswith("解码器，第 3 层第 2 头")
    page = open_page([planted_trace()], "view=toString&constructor=1&layer=99&head=-1&step=x&kind=none&picked=,a,999")
    assert page.inner_text("#view h2") == "Flow"


def test_the_language_can_be_changed(open_page: Open) -> None:
    page = open_page([planted_trace()])
    page.click("#language")
    assert page.get_attribute("html", "lang") == "zh-Hans"
    assert " ".join(page.locator("[role=tab]").all_text_contents()) == "结构 全部头 单个头 六步 位置 解码 比较 体检"
    assert page.get_attribute("#sources span", "lang") == "en"
    assert page.get_attribute("#targets span", "lang") == "zh"
    page.click("#language")
    assert page.inner_text("#tab-flow") == "Flow"


def test_dark_and_light_and_paper(open_page: Open) -> None:
    page = open_page([planted_trace()], "view=head", colours="dark")

    def lightness() -> int:
        return int(page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"))

    assert lightness() < 60
    page.click("#theme")
    assert lightness() > 200
    page.click("#theme")
    assert lightness() < 60
    page.emulate_media(media="print")
    assert lightness() > 200
    assert not page.locator("#tabs").is_visible()
    assert page.locator("#made code").inner_text() == planted_trace()["command"]
    page.wait_for_function("""() => {
        const canvas = document.querySelector("#view canvas"), {left, top} = canvas.dataset;
        return canvas.getContext("2d").getImageData(Number(left) + 4, Number(top) + 4, 1, 1).data[0] > 200;
    }""")


@pytest.mark.parametrize("view", VIEWS)
def test_a_sentence_of_twenty_words_fits(open_page: Open, view: str) -> None:
    page = open_page([planted_trace(ENGLISH, GERMAN)] * 2, f"view={view}&table=1", width=390, colours="dark")
    page.wait_for_timeout(50)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.querySelectorAll('*').length") <= 2000


def test_moving_the_focus_is_quick(open_page: Open) -> None:
    page = open_page([planted_trace(ENGLISH, GERMAN)], "view=head")
    page.wait_for_selector("canvas[data-left]")
    times = page.evaluate("""() => {
        const canvas = document.querySelector("#view canvas"), place = canvas.dataset;
        const box = canvas.getBoundingClientRect();
        return Array.from({length: 15}, (_, i) => {
            const clientX = box.left + Number(place.left) + (i + 0.5) * place.cellWidth;
            const clientY = box.top + Number(place.top) + (i + 0.5) * place.cellHeight, started = performance.now();
            canvas.dispatchEvent(new MouseEvent("mousemove", {clientX, clientY, bubbles: true}));
            return performance.now() - started;
        });
    }""")
    page.wait_for_url("**step=15**")
    assert min(times) <= 16  # the fastest: others share this machine


def test_a_long_sentence_shows_the_largest_weights(open_page: Open) -> None:
    words = [f"w{i}" for i in range(151)]
    page = open_page([planted_trace(words, words[:149])], "view=head")
    cells = cells_of_table(page, "head-table")
    assert len(cells) == 32 * 32
    assert [(r, c) for r, c, value in cells if value > 0.5][:3] == [(0, 2), (1, 5), (2, 8)]
    assert "8 largest" in page.inner_text("#view")
    assert "Elsewhere" in page.inner_text("#saying")


def test_a_recurrent_model_has_one_head_and_says_what_it_has_not(open_page: Open) -> None:
    page = open_page([rnn_trace()])
    assert page.inner_text("#view h2") == "Head"
    assert rows_of(cells_of_table(page, "head-table")) == PLANTED
    for view in ["flow", "steps", "positions"]:
        page.click(f"#tab-{view}")
        assert "recurrent model" in page.inner_text("#view")


@pytest.mark.parametrize(("kind", "said"), [("rotary", "turns queries and keys"), ("none", "told no positions")])
def test_a_model_that_adds_no_table_of_positions_says_what_it_does(open_page: Open, kind: str, said: str) -> None:
    trace = planted_trace()
    page = open_page([trace | {"positions": None, "model": trace["model"] | {"positions": kind}}])
    page.click("#tab-positions")
    assert said in page.inner_text("#view")


def test_a_model_without_attention_is_still_shown(open_page: Open) -> None:
    trace = rnn_trace() | {"attention": [], "alignment": None, "stats": [], "occlusion": None, "beam": None}
    page = open_page([trace])
    for view in VIEWS:
        page.click(f"#tab-{view}")
        page.keyboard.press("e")
    assert "no attention" in page.inner_text("#saying")


def test_two_traces_are_subtracted(open_page: Open) -> None:
    traces = [planted_trace(), planted_trace(seed=2)]
    page = open_page(traces, "view=compare&layer=1&head=2")
    ours, theirs = (
        unpacked(next(a for a in t["attention"] if (a["kind"], a["layer"]) == ("cross", 0)))[1] for t in traces
    )
    cells = cells_of_table(page, "compare-table")
    np.testing.assert_allclose([value for *_, value in cells], (theirs - ours).ravel(), atol=6e-4)
    changes = page.locator("#compare-words tbody td:last-child").all_text_contents()
    expected = [b["logp"] - a["logp"] for a, b in zip(*(t["steps"] for t in traces), strict=True)]
    np.testing.assert_allclose([float(text) for text in changes], expected, atol=6e-3)


def test_numbers_written_into_cells_are_the_values(open_page: Open) -> None:
    trace = planted_trace()
    changes = 10 * unpacked(trace["occlusion"]).astype(float)
    trace["occlusion"] |= packed(changes, "f16")
    page = open_page([trace])
    page.evaluate("""() => {
        const canvas = CanvasRenderingContext2D.prototype, write = canvas.fillText;
        window.written = [];
        canvas.fillText = function (text, ...place) { window.written.push(text); write.call(this, text, ...place); };
    }""")
    page.click("#tab-health")
    written = [float(text) for text in page.evaluate("window.written") if re.fullmatch(r"-?\d*\.\d", text)]
    shown = [value for value in changes.ravel() if abs(value) >= abs(changes).max() / 10]
    assert max(abs(value) for value in shown) > 10
    np.testing.assert_allclose(written, shown, atol=0.06)


def test_words_that_differ_stand_alone(open_page: Open) -> None:
    page = open_page([planted_trace(), planted_trace(target=["2026", "3", "月", "九", "日"])], "view=compare")
    rows = [text.split("\t")[:2] for text in page.locator("#compare-words tbody tr").all_inner_texts()]
    assert rows == [
        ["2026", "2026"],
        ["年", "–"],
        ["3", "3"],
        ["月", "月"],
        ["4", "–"],
        ["–", "九"],
        ["日", "日"],
        ["</s>", "</s>"],
    ]
    assert "cannot be subtracted" in page.inner_text("#view")


def test_text_stays_text(open_page: Open) -> None:
    trace = planted_trace()
    for token in [*trace["source"]["tokens"], *trace["target"]["tokens"]]:
        token["text"] = HOSTILE
    trace["source"]["text"] = trace["model"]["name"] = trace["command"] = HOSTILE
    trace["steps"][0]["top_text"] = [HOSTILE] * 5
    trace["stats"][0]["pattern"] = "constructor"
    page = open_page([trace])
    for view in VIEWS:
        page.click(f"#tab-{view}")
    assert page.locator("img").count() == 0
    assert page.locator("#sources span").first.inner_text() == HOSTILE.replace(" ", "␣")


def test_bytes_and_spaces_are_named(open_page: Open) -> None:
    trace = planted_trace()
    trace["source"]["tokens"][0] |= {"piece": "<0xe5>", "text": "\ufffd"}
    trace["source"]["tokens"][1] |= {"piece": "▁", "text": ""}
    page = open_page([trace])
    assert page.locator("#sources span").all_inner_texts()[:2] == ["⟨E5⟩", "␣"]


def test_new_traces_are_drawn_when_they_arrive(open_page: Open) -> None:
    page = open_page([planted_trace()])
    page.evaluate("trace => CH.show([trace])", planted_trace(target=["年", "月", "日"]))
    assert page.locator("#targets span").all_inner_texts() == ["年", "月", "日", "</s>"]
