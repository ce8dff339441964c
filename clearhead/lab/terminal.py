"""A finding on the terminal: verdict, sentence, table, and a sparkline of each curve."""

import math

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text as RichText

from .experiment import FAILS, HOLDS, IN_PART, Cell, Experiment, Finding, Lines, Text
from .running import Result

STEPS = "▁▂▃▄▅▆▇█"
COLOURS = {HOLDS: "green", IN_PART: "yellow", FAILS: "red"}


def show_list(experiments: list[Experiment], console: Console) -> None:
    """Name and claim of each."""
    table = RichTable(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for experiment in experiments:
        table.add_row(experiment.name, RichText(experiment.claim.en))
    console.print(table)


def show_result(result: Result, console: Console) -> None:
    """What came out of one experiment."""
    experiment, finding = result.experiment, result.finding()
    console.print(f"[bold]{escape(experiment.title.en)}[/bold]  ({experiment.name}, {experiment.source.en})")
    console.print(RichText(f"Claim: {experiment.claim.en}"))
    console.print(f"[{COLOURS[finding.verdict]}]{finding.verdict}[/]: {escape(finding.summary.en)}", highlight=False)
    table = RichTable(pad_edge=False)
    for column in finding.table.columns:
        table.add_column(RichText(column.en))
    for row in finding.table.rows:
        table.add_row(*(RichText(_plain(cell)) for cell in row))
    console.print(table)
    for line in sparklines(finding):
        console.print(RichText(line))
    console.print()


def sparklines(finding: Finding) -> list[str]:
    """Each curve of the plots as one line."""
    lines = []
    for plot in finding.plots:
        if isinstance(plot, Lines):
            curves = {name.en: [_height(spread.mean, plot) for _, spread in points] for name, points in plot.curves}
            every = [height for heights in curves.values() for height in heights]
            for name, heights in curves.items():
                lines.append(f"{sparkline(heights, min(every), max(every))}  {plot.title.en}: {name}")
    return lines


def sparkline(heights: list[float], low: float, high: float) -> str:
    """▁ for the lowest, █ for the highest."""
    span = (high - low) or 1.0
    return "".join(STEPS[round((height - low) / span * (len(STEPS) - 1))] for height in heights)


def _height(value: float, plot: Lines) -> float:
    return math.log10(max(value, 1e-12)) if plot.log_y else value


def _plain(cell: Cell) -> str:
    return cell.en if isinstance(cell, Text) else str(cell)
