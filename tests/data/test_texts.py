"""Plain text as stretches: nothing is lost, nothing is too long, and lines keep their indentation."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.data.corpus import Report
from clearhead.data.options import DataOptions
from clearhead.data.texts import longest_stretch, read_texts

OPTIONS = DataOptions()
LONGEST = longest_stretch(OPTIONS)

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=97), max_size=31)


def stretches(path: Path, report: Report | None = None) -> list[str]:
    return [pair.target for pair in read_texts([path], report or Report(), OPTIONS)]


@given(lines=LINES)
def test_all_text_is_kept_in_its_order(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_text("\n".join([*lines, "end"]) + "\n", encoding="utf-8")
    found = stretches(path)
    assert "".join("".join(found).split()) == "".join("".join([*lines, "end"]).split())
    assert all(0 < len(text) <= LONGEST for text in found)


def test_lines_and_indentation_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f(x):\n    if x:\n        return 1\n\n    return 2\n", encoding="utf-8")
    assert stretches(path) == ["def f(x):\n    if x:\n        return 1\n\n    return 2"]


def test_a_stretch_ends_at_a_blank_line_if_one_is_near(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"{'a' * 97}\n\n{'b' * 97}\n{'c' * 97}\n\n{'d' * 97}\n{'e' * 997}\n", encoding="utf-8")
    found = stretches(path)
    assert [text[0] + text[-1] for text in found[:2]] == ["ac", "dd"]
    assert "".join(found[2:]) == "e" * 997


def test_the_source_is_empty_and_the_line_is_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n\n" + "a" * 379 + "\n" + "b" * 13 + "\n", encoding="utf-8")
    assert [(pair.line, pair.source) for pair in read_texts([path], Report(), OPTIONS)] == [(3, ""), (4, "")]


def test_a_line_that_is_no_utf8_is_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\n\xff\xfebad\nbetter\n")
    report = Report()
    assert stretches(path, report) == ["good\n\nbetter"]
    assert report.notes["skipped_line"].lines == [2]


def test_a_stretch_of_characters_fits_into_the_tokens() -> None:
    assert longest_stretch(DataOptions(tokenizer="characters", max_tokens=101)) < 101 - 1
