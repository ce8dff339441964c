"""A planted pattern is read back from everything that draws it, and text never becomes mark-up."""

import html
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from clearhead.errors import UserError
from clearhead.inspection.arrays import packed_top, packed_weights, unpacked
from clearhead.inspection.heads import head_stats
from clearhead.inspection.notebook import table
from clearhead.inspection.record import Place
from clearhead.inspection.saving import parse_head
from clearhead.inspection.terminal import Style, heads_table, lattice_lines, lines, matrix, plain_text, runners_up
from clearhead.inspection.trace import Trace

from .subjects import trace_of

ORDER = [3, 0, 4, 1, 2, 5]  # which source token each target token looks at


@pytest.fixture(scope="module")
def planted() -> Trace:
    """Cross-attention of layer 1, head 2 is a permutation with 0.9 of the weight; all other heads are nearly even."""
    trace = trace_of(text="b a<你", target="你&c>好")
    rng = np.random.default_rng(3)
    attention = {
        place: _rows(1 + 0.2 * rng.random(weights.shape), place.kind) for place, weights in trace.attention.items()
    }
    rows = np.full((6, 6), 0.02)
    rows[np.arange(6), ORDER] = 0.9
    attention[Place("cross", 1)][2] = rows
    special = np.array([token.special for token in trace.source.tokens])
    cross = [
        stats for layer in (0, 1) for stats in head_stats("cross", layer, attention[Place("cross", layer)], special)
    ]
    return replace(trace, attention=attention, stats=cross)


def _rows(weights: np.ndarray, kind: str) -> np.ndarray:
    weights = np.tril(weights) if kind == "decoder" else weights
    return weights / weights.sum(axis=-1, keepdims=True)


def test_the_planted_head_is_found(planted: Trace) -> None:
    assert planted.aligning is not None
    assert planted.aligning.name == "cross:2:3"
    assert planted.to_dict()["alignment"]["head"] == 2


def test_json_has_it(planted: Trace) -> None:
    (one,) = [a for a in planted.to_dict()["attention"] if (a["kind"], a["layer"]) == ("cross", 1)]
    assert unpacked(one)[2].argmax(axis=1).tolist() == ORDER


def test_the_notebook_table_has_it(planted: Trace) -> None:
    text = table(planted)
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", text)]
    assert [html.unescape(cell) for cell in rows[0][1:]] == [token.text for token in planted.source.tokens]
    assert [html.unescape(row[0]) for row in rows[1:]] == [token.text for token in planted.target.tokens[1:]]
    assert [[bool(cell) for cell in row[1:]].index(True) for row in rows[1:]] == ORDER
    assert not re.search(r"<(script|style|svg)|\bid=", text)


def test_the_frame_of_a_notebook_holds_the_report_and_nothing_of_it_leaks(planted: Trace) -> None:
    frame = planted.show(height=701)._repr_html_()
    assert frame.count("<") == frame.count(">") == 2  # the frame alone: the report is quoted inside it
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    assert "height:701px" in frame
    assert html.unescape(frame.split('srcdoc="')[1].split('" style=')[0]).startswith("<!doctype html>")


def test_the_figure_has_it(planted: Trace) -> None:
    svg = planted.svg("cross", 1, 2)
    cells = re.findall(r'data-query="(\d+)" data-key="(\d+)"><title>([\d.]+)</title>', svg)
    strong = {int(query): int(key) for query, key, share in cells if float(share) > 0.5}
    assert [strong[row] for row in range(6)] == ORDER
    labels = [html.unescape(label) for label in re.findall(r"<text[^>]*>(.*?)</text>", svg)]
    assert labels[1:7] == [token.text for token in planted.source.tokens]


def test_the_grid_has_every_head(planted: Trace) -> None:
    assert planted.svg("cross").count('fill="none"') == 2 * 7
    assert planted.svg("encoder", 1).count('fill="none"') == 7


@pytest.mark.parametrize("plain_ascii", [False, True])
def test_the_terminal_has_it(planted: Trace, plain_ascii: bool) -> None:
    rows = [str(row) for row in matrix(planted, "cross", 1, 2, Style(100, ascii=plain_ascii))]
    strongest = "#" if plain_ascii else "█"
    label = rows[0].index("0") - 3
    for row, place in zip(rows[1:7], ORDER, strict=True):
        cells = row[: row.index("-> " if plain_ascii else "→")]
        wide = cell_len(cells[: cells.index(strongest)])
        assert (wide - label - 1) // 4 == place
        assert f"{planted.source.tokens[place].text} 0.90" in row
    assert plain_ascii == all(ord(character) < 128 for character in "".join(rows) if character not in "你好␣")


def test_each_axis_has_the_tokens_of_its_side(planted: Trace) -> None:
    """A row of the decoder has the name of the token that it writes, a column that of the token that is read."""
    source, target = (["b", "␣", "a", "<", "你", "</s>"], ["<s>", "你", "&", "c", ">", "好", "</s>"])
    assert planted.labels("encoder") == (source, source)
    assert planted.labels("decoder") == (target[1:], target[:-1])
    assert planted.labels("cross") == (target[1:], source)


def test_chinese_stands_in_line(planted: Trace) -> None:
    rows = [str(row) for row in matrix(planted, "cross", 1, 2, Style(100))]
    assert len({cell_len(row[: row.index("→")]) for row in rows[1:7]}) == 1


def test_columns_that_do_not_fit_are_counted_not_wrapped(planted: Trace) -> None:
    rows = [str(row) for row in matrix(planted, "cross", 1, 2, Style(40))]
    assert "3 columns with the least weight are not shown" in rows[-1]
    assert all(cell_len(row) <= 40 for row in rows[:7])


def test_colour_shows_the_same_numbers(planted: Trace) -> None:
    rows = [str(row) for row in matrix(planted, "cross", 1, 2, Style(100, colour=True))]
    assert [row.split().count("90") for row in rows[1:7]] == [1] * 6
    assert lines(planted, Style(100, colour=True))


def test_the_text_is_stable_and_without_colour(planted: Trace) -> None:
    text = plain_text(planted)
    assert text == plain_text(planted)
    assert "\x1b" not in text
    assert planted.target.text in text
    assert planted._repr_mimebundle_()["text/plain"] == text


def test_lattice_and_runners_up_name_what_was_written() -> None:
    trace = trace_of()
    rows = [str(row) for row in lattice_lines(trace)]
    written = [token.text for token in trace.target.tokens[1:]]
    assert [row.split(">")[1].split()[0] for row in rows[:-1] if ">" in row.replace("</s>", "")][:3] == written[:3]
    assert [str(row).split()[1] for row in runners_up(trace)] == written
    assert str(lattice_lines(trace_of(target="a"))[0]).startswith("no beam")
    assert len(heads_table(trace.stats)) == 9


@pytest.mark.parametrize(
    ("kind", "rows", "pattern"),
    [
        ("encoder", np.eye(5), "self"),
        ("encoder", np.eye(5, k=-1) + np.eye(5)[:1].T @ np.eye(5)[:1], "previous"),
        ("encoder", np.eye(5, k=1) + np.eye(5)[-1:].T @ np.eye(5)[-1:], "next"),
        ("encoder", np.eye(5)[[0] * 5], "first"),
        ("cross", np.eye(5)[[4] * 5], "last"),
        ("cross", np.eye(5), "diagonal"),
        ("cross", np.full((5, 5), 0.2), "uniform"),
        ("decoder", np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None], "uniform"),
        ("cross", np.eye(5)[[0, 3, 1, 4, 2]] * 0.6 + 0.08, "broad"),
    ],
)
def test_patterns_have_their_names(kind: str, rows: np.ndarray, pattern: str) -> None:
    (stats,) = head_stats(kind, 0, rows[None], np.array([False] * 4 + [True]))
    assert stats.pattern == pattern


def test_statistics_by_hand() -> None:
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    (stats,) = head_stats("cross", 3, rows[None], np.array([False, False, True]))
    assert stats.entropy == pytest.approx(np.log(2) / np.log(3))
    assert stats.distance == pytest.approx((0.5 + 0.5) / 2)
    assert stats.special_mass == 0.25
    shares = np.array([1 / 3, 2 / 3])
    assert stats.coverage == pytest.approx(-(shares * np.log(shares)).sum() / np.log(2))
    assert stats.align_score == pytest.approx(0.5 * (1 - stats.entropy) + 0.3 * stats.coverage - 0.05)


def test_bytes_of_a_row_sum_to_255_and_are_close() -> None:
    rng = np.random.default_rng(5)
    weights = rng.dirichlet(np.full(11, 0.3), size=(3, 7))
    found = packed_weights(weights)
    assert (np.rint(unpacked(found) * 255).sum(axis=-1) == 255).all()
    assert np.abs(unpacked(found) - weights).max() <= 1 / 255
    top = packed_top(weights, 2)
    assert unpacked(top["keys"]).shape == (3, 7, 2)
    assert (unpacked(top["keys"])[..., 0] == weights.argmax(axis=-1)).all()


@pytest.mark.parametrize("name", ["", "cross:x", "cross:1:2:3", "self:1:2", "cross:-1", "cross:0"])
def test_a_name_that_is_no_head_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="names no head"):
        parse_head(name)


def test_a_head_that_is_not_there_is_refused() -> None:
    trace = trace_of()
    with pytest.raises(UserError, match=r"no head cross:3:1, .* layers 1 to 2 with heads 1 to 7"):
        trace.weights("cross", 2, 0)
    with pytest.raises(UserError, match="no head encoder:8:1"):
        trace.svg("encoder", 7)
