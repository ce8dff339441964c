"""The short table in README and docs is what the command would write."""

from pathlib import Path

import pytest

from benchmarks.results import Cell, Column, Result, Table, load_results, page
from benchmarks.table import BEGIN, END, HEADLINES, PAGES, short_table, with_table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_have_what_the_command_writes(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    table = short_table(load_results(ROOT / "benchmarks" / "RESULTS.json"), name)
    assert text == with_table(text, table), "run python -m benchmarks.table --write"
    assert table.count("\n") >= 2


def test_the_page_of_results_is_what_its_json_says() -> None:
    results = load_results(ROOT / "benchmarks" / "RESULTS.json")
    assert (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8") == page(results)


def test_ours_stands_beside_the_best_peer() -> None:
    headline = HEADLINES[0]
    speeds = {headline.ours: 6.0, "A": 2.0, "B": 3.0}
    rows: dict[str, dict[str, Cell]] = {name: {headline.column: [speed]} for name, speed in speeds.items()}
    table = Table(headline.table, [Column(headline.column, "higher")], rows, [headline.ours])
    result = Result("", "", {}, 0.0, False, [table])
    assert short_table({headline.question: result}, "README.md").splitlines()[2:] == [
        f"| {headline.english} | 6 | 3 | B | 2.00× |"
    ]
    assert headline.chinese in short_table({headline.question: result}, "README.zh-CN.md")


def test_what_was_not_measured_is_left_out() -> None:
    headline = HEADLINES[0]
    alone = Table(headline.table, [Column(headline.column, "higher")], {headline.ours: {headline.column: [6.0]}}, [])
    other = Table(headline.table, [Column("something else")], {}, [])
    result = Result("", "", {}, 0.0, False, [alone, other])
    assert short_table({headline.question: result}, "README.md").count("\n") == 1


def test_only_what_is_between_the_marks_changes() -> None:
    assert with_table(f"a{BEGIN}old{END}b", "new") == f"a{BEGIN}\nnew\n{END}b"
    with pytest.raises(ValueError, match="to write between"):
        with_table(f"a{BEGIN}b", "new")
