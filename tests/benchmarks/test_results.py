"""RESULTS.md is written of RESULTS.json alone; ratios are the rounds' own; a peer that fails is a row."""

from pathlib import Path

import pytest

from benchmarks.results import (
    HIGHER,
    LOWER,
    Column,
    Result,
    Table,
    best_peer,
    load_results,
    markdown,
    number,
    page,
    plot,
    ratio,
    ratios,
    save_results,
    spread,
)

SPEED = Column("tokens/s", HIGHER)
WAIT = Column("p50, ms", LOWER)


def table(**changes: object) -> Table:
    known: dict[str, object] = {
        "title": "A table",
        "columns": [SPEED, Column("memory")],
        "rows": {
            "Clearhead": {"tokens/s": [20.0, 30.0, 50.0], "memory": "7 MiB"},
            "Fast": {"tokens/s": [10.0, 60.0, 25.0]},
            "Slow": {"tokens/s": [5.0, 5.0]},
        },
        "ours": ["Clearhead"],
        "errors": {"Broken": "cannot be installed:\n a | b"},
    }
    return Table(**{**known, **changes})  # type: ignore[arg-type]


def result(*tables: Table, quick: bool = False) -> Result:
    return Result("How fast?", "python -m benchmarks x", {"cpu": "abacus"}, 2.0, quick, list(tables))


def test_ratios_are_of_rounds_and_not_of_medians() -> None:
    assert ratios([20.0, 30.0, 50.0], [10.0, 60.0, 25.0], HIGHER) == [2.0, 0.5, 2.0]
    assert ratio([20.0, 30.0, 50.0], [10.0, 60.0, 25.0], HIGHER) == "2.00× (0.50–2.00)"


def test_less_is_more_where_it_is() -> None:
    assert ratios([2.0, 3.0], [4.0, 9.0], LOWER) == [1 / one for one in ratios([2.0, 3.0], [4.0, 9.0], HIGHER)]


def test_rounds_that_only_one_had_are_left_out() -> None:
    assert ratios([2.0, 3.0, 5.0], [1.0], HIGHER) == [2.0]
    assert ratio([2.0], [1.0], HIGHER) == "2.00×"
    assert ratio([2.0], [], HIGHER) == "–"


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.12345, "0.123"), (7.0, "7"), (41.26, "41.3"), (12345.6, "12,346")]
)
def test_numbers_are_as_long_as_they_are_worth(value: float, text: str) -> None:
    assert number(value) == text


def test_a_spread_is_the_median_and_the_range() -> None:
    assert spread([3.0, 1.0, 2.0]) == "2 (1–3)"
    assert spread([3.0]) == "3"


def test_each_system_is_a_row_and_so_is_one_that_failed() -> None:
    header, rule, *rows = markdown(table()).splitlines()
    assert header == "| system | tokens/s | Clearhead is | memory |"
    assert rule.count("---") == 4
    assert rows == [
        "| Clearhead | 30.0 (20.0–50.0) | – | 7 MiB |",
        "| Fast | 25.0 (10.0–60.0) | 2.00× (0.50–2.00) | – |",
        "| Slow | 5 (5–5) | 5.00× (4.00–6.00) | – |",
        "| Broken | cannot be installed: a \\| b |  |  |",
    ]


def test_with_two_rows_of_ours_there_are_two_ratios() -> None:
    rows = {"Clearhead auto": {"tokens/s": [4.0]}, "Clearhead native": {"tokens/s": [2.0]}, "X": {"tokens/s": [1.0]}}
    lines = markdown(table(rows=rows, ours=["Clearhead auto", "Clearhead native"], errors={})).splitlines()
    assert lines[0] == "| system | tokens/s | Clearhead auto is | Clearhead native is | memory |"
    assert lines[-1] == "| X | 1 | 4.00× | 2.00× | – |"


def test_words_are_never_compared() -> None:
    rows = {"Clearhead": {"tokens/s": "not in hardware"}, "Fast": {"tokens/s": [1.0]}}
    assert "| Fast | 1 | – | – |" in markdown(table(rows=rows))


def test_the_best_peer_is_not_ours() -> None:
    assert best_peer(table(), SPEED) == "Fast"
    waits = {"Clearhead": {"p50, ms": [1.0]}, "Fast": {"p50, ms": [9.0]}, "Slow": {"p50, ms": [5.0]}}
    assert best_peer(table(rows=waits), WAIT) == "Slow"
    assert best_peer(table(rows={"Clearhead": {"tokens/s": [1.0]}, "Words": {"tokens/s": "no"}}), SPEED) is None


def test_the_page_is_made_of_the_json_alone(tmp_path: Path) -> None:
    results = {"x": result(table(), table(title="", about="Something."), quick=True)}
    save_results(results, tmp_path)
    again = load_results(tmp_path / "RESULTS.json")
    assert again == results
    written = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert written == page(again)
    assert "## How fast?" in written
    assert "Something." in written
    assert "a quick look" in written
    assert "`python -m benchmarks x` took 2 minutes" in written
    assert "cpu abacus" in written


def test_without_a_file_nothing_was_measured(tmp_path: Path) -> None:
    assert load_results(tmp_path / "RESULTS.json") == {}


def test_a_table_over_numbers_is_drawn(tmp_path: Path) -> None:
    rows = {"Clearhead": {"10": [1.0, 3.0], "1,000": [5.0]}, "Fast": {"10": [2.0], "1,000": "ended"}}
    grown = table(columns=[Column("10"), Column("1,000")], rows=rows, figure="growth-x.svg", axes=["words", "ms"])
    save_results({"growth": result(grown)}, tmp_path)
    svg = (tmp_path / "growth-x.svg").read_text(encoding="utf-8")
    assert svg == plot(grown)
    assert svg.count("<polyline") == 2
    assert "Clearhead" in svg
    assert "words" in svg
    assert "![A table](growth-x.svg)" in (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
