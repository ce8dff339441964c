"""Plots: what is drawn, and that PNG is the same picture."""

import builtins
import re
from typing import Any

import pytest

from clearhead.errors import UserError
from clearhead.figures import chart, png


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
