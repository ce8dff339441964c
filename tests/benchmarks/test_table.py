"""The short table in README and docs is what the command would write."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import equal_minutes, quality
from benchmarks.quality_table import equal_table, quality_table
from benchmarks.results import Cell, Column, Result, Table, load_results, page
from benchmarks.table import END, HEADLINES, PAGES, RESULTS, begin_of, short_table, tables_of, with_table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_have_what_the_command_writes(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for source, table in tables_of(name).items():
        assert text == with_table(text, table, source), "run python -m benchmarks.table --write"
        assert table.count("\n") >= 2


def test_the_page_of_results_is_what_its_json_says() -> None:
    results = load_results(ROOT / "benchmarks" / "RESULTS.json")
    assert (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8") == page(results)


@pytest.mark.parametrize(("name", "page_of"), [("QUALITY", quality.page), ("EQUAL", equal_minutes.page)])
def test_the_pages_of_what_was_learned_are_what_their_json_says(name: str, page_of: Callable[[Any], str]) -> None:
    folder = ROOT / "benchmarks"
    runs = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert (folder / f"{name}.md").read_text(encoding="utf-8") == page_of(runs)


def test_ours_stands_beside_the_best_peer() -> None:
    headline = HEADLINES[0]
    speeds = {headline.ours: 6.0, "A": 2.0, "B": 3.0}
    rows: dict[str, dict[str, Cell]] = {name: {headline.column: [speed]} for name, speed in speeds.items()}
    table = Table(headline.table, [Column(headline.column, "higher")], rows, [headline.ours])
    result = Result("", "", {"cpu": "Z80"}, 0.0, False, [table])
    assert short_table({headline.question: result}, "README.md").splitlines()[2:] == [
        f"| {headline.english} | 6 | 3 | B | 2.00× | Z80 |"
    ]
    assert headline.chinese in short_table({headline.question: result}, "README.zh-CN.md")


def test_what_was_not_measured_is_left_out() -> None:
    headline = HEADLINES[0]
    alone = Table(headline.table, [Column(headline.column, "higher")], {headline.ours: {headline.column: [6.0]}}, [])
    other = Table(headline.table, [Column("something else")], {}, [])
    result = Result("", "", {}, 0.0, False, [alone, other])
    assert short_table({headline.question: result}, "README.md").count("\n") == 1


def test_only_what_is_between_the_marks_changes() -> None:
    begin = begin_of(RESULTS)
    assert with_table(f"a{begin}old{END}b", "new") == f"a{begin}\nnew\n{END}b"
    with pytest.raises(ValueError, match="to write between"):
        with_table(f"a{begin}b", "new")


def found(value: float) -> dict[str, Any]:
    intervals = {name: [value - 1, value + 1] for name in ("error_rate", "bleu")}
    return {"error_rate": value, "bleu": value, "intervals": intervals, "signatures": {"bleu": "nrefs:1|tok:13a|x:y"}}


def test_the_best_run_of_each_task_is_shown() -> None:
    """By its validation: for a test set the best of several would be too good."""
    values = [
        ("g2p-en", 5.0, 70.0),
        ("g2p-en", 7.0, 80.0),
        ("multi30k-en-de", 29.0, 33.0),
        ("multi30k-en-de", 31.0, 32.0),
    ]
    runs = [
        {"task": task, "minutes": value, "tests": {"test": found(value)}, "curve": [[1.0, 90.0], [value, valid]]}
        | {"machine": {"cpu": f"CPU {value:g}"}}
        for task, value, valid in values
    ]
    assert quality_table(runs, is_chinese=False).splitlines()[2:] == [
        "| g2p-en | 7 | CPU 7 | test | 7.0 (6.0–8.0) % of phonemes wrong |",
        "| multi30k-en-de | 29 | CPU 29 | test | 29.0 (28.0–30.0) BLEU, tok:13a |",
    ]


def test_seeds_are_averaged_and_what_was_not_run_is_seen() -> None:
    values = [
        ("tatoeba-en-zh", 1, "A", 11.0),
        ("tatoeba-en-zh", 1, "B", 7.0),
        ("tatoeba-en-zh", 2, "A", 13.0),
        ("tatoeba-en-zh", 2, "C", 3.0),
        ("tatoeba-en-zh", 3, "A", 99.0),  # nobody else ran this seed
        ("g2p-en", 1, "A", 5.0),
        ("g2p-en", 1, "B", 6.0),
    ]
    runs = [
        {"task": task, "minutes": 20.0, "seed": seed, "system": system, "bleu": value, "error_rate": value}
        for task, seed, system, value in values
    ]
    assert equal_table(runs, is_chinese=False).splitlines()[2:] == [
        "| tatoeba-en-zh, BLEU | 20 | 12.0 (n=2) | 7.0 (n=1) | 3.0 (n=1) |",
        "| g2p-en, % of phonemes wrong | 20 | 5.0 (n=1) | 6.0 (n=1) | – |",
    ]
