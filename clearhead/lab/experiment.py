"""What an experiment is, and what it finds: values without torch, all text in English and Chinese.

An experiment measures once per seed, and concludes from what all seeds gave. So seeds can be measured in several
processes, and a conclusion can be drawn again from the numbers that were written down.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"

Measured = dict[str, list[float]]  # what one seed gave: named rows of numbers
Runs = Sequence[Measured]  # one for each seed


class Text(NamedTuple):
    """The same in both languages."""

    en: str
    zh: str


VERDICTS = {
    HOLDS: Text("holds", "成立"),
    IN_PART: Text("holds in part", "部分成立"),
    FAILS: Text("does not hold", "不成立"),
}


@dataclass(frozen=True)
class Spread:
    """One quantity as several seeds gave it."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def __str__(self) -> str:
        if number(self.low) == number(self.high):
            return number(self.mean)
        return f"{number(self.mean)} ({number(self.low)}–{number(self.high)})"


Cell = Text | Spread


@dataclass(frozen=True)
class Table:
    columns: list[Text]
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Lines:
    """Curves over x; every point has its spread over the seeds."""

    title: Text
    x: Text
    y: Text
    curves: list[tuple[Text, list[tuple[float, Spread]]]]
    log_x: bool = False
    log_y: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Bars:
    """In each group a bar of every series."""

    title: Text
    y: Text
    groups: list[Text]
    series: list[tuple[Text, list[Spread]]]
    log_y: bool = False
    high: float | None = None


@dataclass(frozen=True)
class HeatMap:
    """A matrix; rows and columns are numbered unless they have names."""

    title: Text
    rows: Text
    columns: Text
    cells: list[list[float]]
    high: float | None = None
    row_names: list[str] = field(default_factory=list)
    column_names: list[str] = field(default_factory=list)


Plot = Lines | Bars | HeatMap


@dataclass(frozen=True)
class Finding:
    """What came out. The verdict and the summary follow from the numbers."""

    verdict: str
    summary: Text
    table: Table
    plots: list[Plot]


@dataclass(frozen=True)
class Experiment:
    """A claim and how it is measured."""

    name: str
    title: Text
    claim: Text
    source: Text  # which note, and where in it
    did: Text
    limits: Text  # what it does not show
    seeds: tuple[int, ...]
    measure: Callable[[int], Measured]
    conclude: Callable[[Runs], Finding]


def same(text: str) -> Text:
    """What needs no translation."""
    return Text(text, text)


def row(name: Text | str, *cells: Cell) -> list[Cell]:
    """A row of a table, by its name."""
    return [name if isinstance(name, Text) else same(name), *cells]


def over(runs: Runs, key: str, place: int = 0) -> Spread:
    """One of the measured numbers, in all runs."""
    return Spread(tuple(run[key][place] for run in runs))


def curve(runs: Runs, key: str, across: Sequence[float]) -> list[tuple[float, Spread]]:
    """A measured row over its x."""
    return [(x, over(runs, key, i)) for i, x in enumerate(across)]


def verdict(fully: bool, partly: bool) -> str:
    return HOLDS if fully else IN_PART if partly else FAILS


def number(value: float) -> str:
    """Two or three digits that count: 0.98, 16.0, 12,300, 4.8×10⁻⁷."""
    if value == 0:
        return "0"
    size = abs(value)
    if size < 1e-3 or size >= 1e6:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa}×10{str(int(exponent)).translate(RAISED)}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if size < 0.1 else f"{value:.2f}" if size < 10 else f"{value:.1f}"


def percent(value: float) -> str:
    return f"{100 * value:.0f}%"
