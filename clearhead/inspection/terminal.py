"""A trace on a terminal: widths are counted in cells, so that Chinese stands in line, and colour is never needed."""

import io
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from .heads import HeadStats
from .trace import Trace

SHADES = " ·░▒▓█"
ASCII_SHADES = " .:-=#"
CELL = 4  # cells of one column of a matrix
HEADS_SHOWN = 8
MOST_ROWS = 60


@dataclass(frozen=True)
class Style:
    """How to draw: with colours, with blocks, or with ASCII alone."""

    width: int
    colour: bool = False
    ascii: bool = False

    @classmethod
    def of_terminal(cls, plain_ascii: bool = False, width: int | None = None) -> "Style":
        """What standard output can show."""
        console = Console()
        has_colour = console.color_system is not None and not console.no_color and os.environ.get("TERM") != "dumb"
        return cls(width or console.width, has_colour and not plain_ascii, plain_ascii or not _can_show(SHADES))

    @property
    def shades(self) -> str:
        return ASCII_SHADES if self.ascii else SHADES


def print_trace(trace: Trace, width: int | None = None, plain_ascii: bool = False) -> None:
    """To standard output, in colour only where someone sees it."""
    print_lines(lines(trace, Style.of_terminal(plain_ascii, width)))


def print_lines(rows: Iterable[Text]) -> None:
    console = Console(highlight=False)
    for row in rows:
        console.print(row, soft_wrap=True)


def plain_text(trace: Trace, width: int = 100, plain_ascii: bool = False) -> str:
    """The same without colour, always the same text for the same trace."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False)
    for line in lines(trace, Style(width, colour=False, ascii=plain_ascii)):
        console.print(line, soft_wrap=True)
    return "\n".join(row.rstrip() for row in out.getvalue().splitlines())


def lines(trace: Trace, style: Style) -> list[Text]:
    """Source, translation with how likely each token was, the head that aligns best, and the heads that matter most."""
    shown = [Text(trace.source.text), Text(f"→ {trace.target.text}"), Text(), *_probabilities(trace, style), Text()]
    best = trace.aligning
    if best is not None:
        shown += [Text(f"Head {best.name} follows the words best (score {best.align_score:.2f}). Where it looked:")]
        shown += matrix(trace, best.kind, best.layer, best.head, style)
        shown += [Text("Attention shows where a head read, not why a word was chosen."), Text()]
        shown += heads_table(trace.stats)
    return shown + [Text(f"note: {note}") for note in trace.notes]


def matrix(trace: Trace, kind: str, layer: int, head: int, style: Style) -> list[Text]:
    """Rows ask, columns are read; columns have numbers, which the last line explains."""
    weights = trace.weights(kind, layer, head)
    asking, read = trace.labels(kind)
    label = min(16, max(cell_len(text) for text in asking))
    room = max(1, (style.width - label - 24) // CELL)
    columns = np.sort(np.argsort(-weights.sum(axis=0), kind="stable")[:room])
    rows = [Text(" " * label + "".join(f"{column:>{CELL}}" for column in columns))]
    for text, row in list(zip(asking, weights, strict=True))[:MOST_ROWS]:
        line = Text(_fitted(text, label))
        for column in columns:
            line.append_text(_cell(float(row[column]), style))
        most = int(row.argmax())
        line.append(f"  -> {read[most]} {row[most]:.2f}" if style.ascii else f"  → {read[most]} {row[most]:.2f}")
        rows.append(line)
    rows.append(Text(" " * label + "  " + "  ".join(f"{column}:{read[column]}" for column in columns)))
    hidden = len(read) - len(columns)
    if hidden:
        rows.append(Text(f"{hidden} columns with the least weight are not shown; a wider window has room for more"))
    if len(asking) > MOST_ROWS:
        rows.append(Text(f"{len(asking) - MOST_ROWS} more rows are not shown; --html or --json has all"))
    return rows


def heads_table(stats: list[HeadStats], most: int = HEADS_SHOWN) -> list[Text]:
    """Those without which the translation would lose most."""
    known = [one for one in stats if one.ablate_dlogp is not None] or stats
    ordered = sorted(known, key=lambda one: one.ablate_dlogp or 0.0)[:most]
    rows = [Text("head          entropy  distance  special  pattern    log p without it")]
    for one in ordered:
        without = "–" if one.ablate_dlogp is None else f"{one.ablate_dlogp:+.3f}"
        numbers = f"{one.entropy:>7.2f}  {one.distance:>8.1f}  {one.special_mass:>7.2f}"
        rows.append(Text(f"{one.name:<12}  {numbers}  {one.pattern:<9}  {without:>16}"))
    return rows


def runners_up(trace: Trace) -> list[Text]:
    """For each step what else could have been written."""
    rows = []
    for step, token in zip(trace.steps, trace.target.tokens[1:], strict=True):
        others = "  ".join(
            f"{text} {np.exp(logp):.2f}" for (_, logp), text in zip(step.top, step.top_text, strict=True)
        )
        rows.append(Text(f"{step.t:>3}  {_fitted(token.text, 12)} {np.exp(step.logp):.2f}  |  {others}"))
    return rows


def lattice_lines(trace: Trace) -> list[Text]:
    """What the beam held at each step, best first; an arrow marks what became the translation."""
    if trace.beam is None:
        return [Text("no beam: the target was given")]
    nodes, chosen = trace.beam.nodes, set()
    place: int | None = trace.beam.best
    while place is not None:
        chosen.add(place)
        place = nodes[place].parent
    rows = []
    for t in range(1, max(node.t for node in nodes) + 1):
        here = sorted((node for node in nodes if node.t == t), key=lambda node: -node.sum)
        texts = []
        for node in here:
            mark = ">" if node.n in chosen else "x" if node.state == "pruned" else " "
            texts.append(f"{mark}{trace.beam_text[node.n]} {node.logp:.2f} ({node.sum:.2f})")
        rows.append(Text(f"{t:>3}  " + "   ".join(texts)))
    return [*rows, Text("> translation  x dropped   log p of the token (of all so far)")]


def _probabilities(trace: Trace, style: Style) -> list[Text]:
    """The target's tokens, each on a ground as light as it was likely; without colour a row of digits below."""
    tokens = [token.text for token in trace.target.tokens[1:]]
    chances = [float(np.exp(step.logp)) for step in trace.steps]
    if style.colour:
        line = Text()
        for text, chance in zip(tokens, chances, strict=True):
            line.append(f" {text} ", style=_ground(chance))
            line.append(f"{chance:.0%} ", style="dim")
        return [line]
    widths = [max(4, cell_len(text)) for text in tokens]
    rows: list[list[str]] = [[], []]
    total = 0
    for text, chance, width in zip(tokens, chances, widths, strict=True):
        if total + width + 1 > style.width:
            break
        total += width + 1
        rows[0].append(set_cell_size(text, width))
        rows[1].append(set_cell_size(f"{chance:.2f}", width))
    return [Text(" ".join(row)) for row in rows]


def _cell(weight: float, style: Style) -> Text:
    if style.colour:
        return Text(f" {round(100 * weight):>2} " if weight < 0.995 else " 1  ", style=_ground(weight))
    shade = style.shades[min(len(style.shades) - 1, int(weight * len(style.shades)))]
    return Text(" " + shade * (CELL - 1))


def _ground(share: float) -> str:
    """Dark blue to yellow, with letters that can be read on it."""
    low, high = np.array([0, 32, 76]), np.array([255, 234, 70])
    red, green, blue = (low + (high - low) * share).astype(int)
    return f"{'black' if share > 0.5 else 'white'} on rgb({red},{green},{blue})"


def _fitted(text: str, width: int) -> str:
    return set_cell_size(text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…", width)


def _can_show(characters: str) -> bool:
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
