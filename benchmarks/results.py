"""What was measured, as JSON; RESULTS.md is written of that alone.

A result answers one question by tables. In a table each system has a row, and each cell is the list of what its rounds
gave, or words. Rounds of one table were run in turn, so they are compared pair by pair.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from clearhead.figures import Axes, Curve, line_plot

Cell = list[float] | str

HIGHER, LOWER = "higher", "lower"


@dataclass(frozen=True)
class Column:
    """A quantity; with `better` it is also compared with ours."""

    name: str
    better: str = ""


@dataclass(frozen=True)
class Table:
    """Systems and what was measured of them; those that failed are listed with their error."""

    title: str
    columns: list[Column]
    rows: dict[str, dict[str, Cell]]
    ours: list[str] = field(default_factory=list)  # the rows that the others are compared with
    errors: dict[str, str] = field(default_factory=dict)
    about: str = ""
    figure: str = ""  # an SVG beside the page, of columns whose names are numbers
    axes: list[str] = field(default_factory=list)  # of the figure: across, up


@dataclass(frozen=True)
class Result:
    """The answer to one question, and all that is needed to ask it again."""

    asks: str
    command: str
    machine: dict[str, str]
    minutes: float  # that it took; 0: not noted
    quick: bool
    tables: list[Table]


def load_results(file: Path) -> dict[str, Result]:
    """By question; nothing if there is no such file yet."""
    if not file.exists():
        return {}
    return {name: _result(found) for name, found in json.loads(file.read_text(encoding="utf-8")).items()}


def _result(found: dict[str, Any]) -> Result:
    tables = [
        Table(**{**table, "columns": [Column(**column) for column in table["columns"]]}) for table in found["tables"]
    ]
    return Result(**{**found, "tables": tables})


def save_results(results: dict[str, Result], folder: Path) -> None:
    """RESULTS.json and RESULTS.md."""
    raw = {name: asdict(result) for name, result in results.items()}
    text = json.dumps(raw, indent=1, ensure_ascii=False)
    (folder / "RESULTS.json").write_text(text + "\n", encoding="utf-8")
    (folder / "RESULTS.md").write_text(page(results), encoding="utf-8")
    for table in (table for result in results.values() for table in result.tables if table.figure):
        (folder / table.figure).write_text(plot(table), encoding="utf-8")


def plot(table: Table) -> str:
    """A curve for each system, with the range of its rounds."""
    curves = []
    for name, cells in table.rows.items():
        found = [(float(column.name.replace(",", "")), cells.get(column.name)) for column in table.columns]
        rounds = [(x, cell) for x, cell in found if isinstance(cell, list)]
        points = [(x, statistics.median(cell)) for x, cell in rounds]
        curves.append(Curve(name, points, [(x, min(cell), max(cell)) for x, cell in rounds]))
    across, up = table.axes
    return line_plot(curves, Axes(table.title, across, up, log_x=True, log_y=True, width=560, height=340))


# -- numbers -----------------------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Three digits that count, or all of those before the point."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def spread(rounds: Sequence[float]) -> str:
    """The median, and the range of all rounds where there are several."""
    middle = number(statistics.median(rounds))
    return f"{middle} ({number(min(rounds))}–{number(max(rounds))})" if len(rounds) > 1 else middle


def ratios(ours: Sequence[float], theirs: Sequence[float], better: str) -> list[float]:
    """Round by round how many times as good ours is; rounds that only one of them had are left out."""
    pairs = [(a, b) if better == HIGHER else (b, a) for a, b in zip(ours, theirs, strict=False)]
    return [above / below for above, below in pairs if below]


def ratio(ours: Sequence[float], theirs: Sequence[float], better: str) -> str:
    """Median and range of the rounds' own ratios."""
    each = ratios(ours, theirs, better)
    if not each:
        return "–"
    middle = f"{statistics.median(each):.2f}×"
    return f"{middle} ({min(each):.2f}–{max(each):.2f})" if len(each) > 1 else middle


def best_peer(table: Table, column: Column) -> str | None:
    """The system that is not ours with the best median."""
    found = {name: cells.get(column.name) for name, cells in table.rows.items() if not name.startswith("Clearhead")}
    medians = {name: statistics.median(cell) for name, cell in found.items() if isinstance(cell, list)}
    if not medians:
        return None
    return (max if column.better == HIGHER else min)(medians, key=lambda name: medians[name])


# -- the page ----------------------------------------------------------------------------------------------------------

ABOUT = """# Results

Written by `make bench` from [RESULTS.json](RESULTS.json). All systems of a table took turns, round by round, in one
run. A figure is the median of the rounds with their range; a ratio says how many times as good (as fast, as small)
the named row of ours is, the median of the rounds' own ratios with their range. What was tried on the way, and
profiles: [LOG.md](LOG.md). Longer tables of their own: [quality](QUALITY.md), [equal minutes](EQUAL.md),
[parity of the engines](PARITY.md), [looking inside](INSPECTION.md),
[what is lost or changed in silence](FAITHFUL.md)."""


def page(results: dict[str, Result]) -> str:
    parts = [ABOUT]
    for name, result in results.items():
        parts.append(f"## {result.asks}")
        parts += [part for table in result.tables for part in _section(table)]
        taken = f"`{result.command}`" + (f" took {number(result.minutes)} minutes" if result.minutes else "")
        quick = ", a quick look: smaller samples and fewer rounds" if result.quick else ""
        machine = ", ".join(f"{what} {value}" for what, value in result.machine.items())
        parts.append(f"<sub>Question `{name}`: {taken}{quick}. {machine}.</sub>")
    return "\n\n".join(parts) + "\n"


def _section(table: Table) -> list[str]:
    parts = [f"### {table.title}"] if table.title else []
    parts += [table.about] if table.about else []
    parts.append(markdown(table))
    return [*parts, f"![{table.title}]({table.figure})"] if table.figure else parts


def markdown(table: Table) -> str:
    """Rows by system; after each compared column how many times as good each row of ours is."""
    header = ["system"]
    for column in table.columns:
        header += [column.name, *(f"{name} is" for name in table.ours if column.better)]
    lines = [header, ["---"] * len(header)]
    for name, cells in table.rows.items():
        line = [name]
        for column in table.columns:
            cell = cells.get(column.name, "–")
            line.append(cell if isinstance(cell, str) else spread(cell))
            line += [_against(table, own, name, column) for own in table.ours if column.better]
        lines.append(line)
    for name, error in table.errors.items():
        lines.append([name, _in_one_cell(error), *[""] * (len(header) - 2)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _against(table: Table, own: str, name: str, column: Column) -> str:
    ours, theirs = table.rows.get(own, {}).get(column.name), table.rows[name].get(column.name)
    if own == name or not isinstance(ours, list) or not isinstance(theirs, list):
        return "–"
    return ratio(ours, theirs, column.better)


def _in_one_cell(error: str) -> str:
    return " ".join(error.split()).replace("|", "\\|")
