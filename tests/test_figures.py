"""Plots: what is drawn, and that PNG is the same picture."""

import builtins
import re
from typing import Any

import pytest

from clearhead.errors import UserError
from clearhead.figures import (
    LETTER,
    Axes,
    Bar,
    Curve,
    bar_plot,
    chart,
    heat_map,
    in_two_lines,
    line_plot,
    png,
    shortened,
    side_by_side,
    tick_text,
)


def test_each_curve_is_drawn_with_its_name() -> None:
    svg = chart({"ours": [(0, 1.0), (7, 3.0)], "theirs": [(0, 2.0), (5, 2.5), (7, 1.0)]})
    lines = [match.split() for match in re.findall(r'polyline[^>]*points="([^"]*)"', svg)]
    assert [len(line) for line in lines] == [2, 3]
    assert lines[0][1].split(",")[0] == lines[1][2].split(",")[0]  # both end at 7
    assert ">ours<" in svg
    assert ">theirs<" in svg


def test_png_has_the_size_of_the_svg_times_zoom() -> None:
    picture = png(chart({"a": [(0, 1.0), (1, 2.0)]}, width=71, height=53), zoom=3)
    assert picture.startswith(b"\x89PNG")
    assert [int.from_bytes(picture[i : i + 4], "big") for i in (16, 20)] == [213, 159]


def test_png_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "resvg_py":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"clearhead\[png\]"):
        png("<svg/>")


def heights_of(svg: str) -> list[float]:
    return [float(height) for height in re.findall(r'<rect x="[^"]*" y="[^"]*" width="[^"]*" height="([^"]*)"', svg)]


def test_bars_are_as_high_as_their_numbers() -> None:
    bars = {"ours": [Bar(2.0, 1.5, 2.5), Bar(4.0, 4.0, 4.0)]}
    first, second = heights_of(bar_plot(["a", "b"], bars, Axes("title", y_name="share", high=5.0)))
    assert second == pytest.approx(2 * first, abs=0.2)


def test_a_logarithmic_axis_makes_ratios_into_distances() -> None:
    svg = line_plot([Curve("a", [(1, 1e-6), (10, 1e-3), (100, 1.0)])], Axes(log_x=True, log_y=True))
    (points,) = re.findall(r'polyline[^>]*points="([^"]*)"', svg)
    (x1, y1), (x2, y2), (x3, y3) = ([float(part) for part in point.split(",")] for point in points.split())
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y2 - y1 == pytest.approx(y3 - y2, abs=0.2)


def test_zero_stands_at_the_foot_of_a_logarithmic_axis() -> None:
    svg = line_plot([Curve("a", [(0, 0.0), (1, 1e-3), (2, 1.0)])], Axes(log_y=True))
    (points,) = re.findall(r'polyline[^>]*points="([^"]*)"', svg)
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert heights[0] == heights[1] > heights[2]


def test_a_heat_map_is_darkest_where_the_matrix_is_largest() -> None:
    svg = heat_map([[0.0, 1.0, 0.5], [0.25, 0.0, 0.75]], Axes(), (["r", "s"], ["a", "b", "c"]))
    shades = [float(shade) for shade in re.findall(r'fill-opacity="([^"]*)"', svg)]
    assert sorted(range(6), key=lambda i: shades[i])[-3:] == [2, 5, 1]


def test_names_are_escaped_and_shortened() -> None:
    svg = line_plot([Curve("<script>", [(0, 1.0), (1, 2.0)])], Axes("a & b"))
    assert "<script>" not in svg
    assert "a &amp; b" in svg
    assert shortened("长长的名字", 4 * LETTER) == "长…"
    assert in_two_lines("one two", 4 * LETTER) == ["one", "two"]
    assert in_two_lines("one", 4 * LETTER) == ["one"]


def test_pictures_side_by_side_keep_their_content() -> None:
    one, other = (line_plot([Curve(name, [(0, 1.0), (1, 2.0)])], Axes(width=71, height=53)) for name in "ab")
    both = side_by_side([one, other])
    assert 'viewBox="0 0 142 53"' in both
    assert both.count("<polyline") == 2
    assert png(both).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("value", "text"), [(0.25, "0.25"), (40.0, "40"), (12000.0, "12,000"), (1e-7, "1e-7"), (2.50, "2.5"), (0.0, "0")]
)
def test_ticks_are_short(value: float, text: str) -> None:
    assert tick_text(value) == text


def test_a_logarithmic_axis_shorter_than_a_doubling_shows_its_ends() -> None:
    svg = line_plot([Curve("a", [(1.0, 1.1), (2.0, 1.3)])], Axes(log_y=True))
    assert ">1.1<" in svg
    assert ">1.3<" in svg
