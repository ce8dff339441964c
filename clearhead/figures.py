"""Plots as SVG text, made without a library, and any SVG as PNG.

Colours are attributes, and what has a theme has a class too (paper, ink, grid): alone a picture is dark on white, and
a page may give other colours to the classes.
"""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from clearhead.errors import USAGE, UserError

COLOURS = ("#4878a8", "#c44e52", "#6a9f58", "#8a6fb0", "#c98a2b", "#3d9a9a")
NAMESPACE = "http://www.w3.org/2000/svg"
EMPTY = f'<svg xmlns="{NAMESPACE}"/>'
LETTER = 6.3  # pixels of a letter at 12; a Chinese one is twice as wide


@dataclass(frozen=True)
class Axes:
    """What stands around a plot, and its size."""

    title: str = ""
    x_name: str = ""
    y_name: str = ""
    log_x: bool = False
    log_y: bool = False
    low: float | None = None  # of the y axis; none given: what the data need
    high: float | None = None
    width: int = 420
    height: int = 300


@dataclass(frozen=True)
class Curve:
    """Points (x, y), and around them a band of (x, low, high)."""

    name: str
    points: list[tuple[float, float]]
    band: list[tuple[float, float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Bar:
    """A height and the range in which it was found."""

    height: float
    low: float
    high: float


def chart(curves: dict[str, list[tuple[float, float]]], width: int = 720, height: int = 360) -> str:
    """An SVG of named curves."""
    return line_plot([Curve(name, points) for name, points in curves.items()], Axes(width=width, height=height))


def line_plot(curves: Sequence[Curve], axes: Axes) -> str:
    """An SVG of curves, each in a colour of its own."""
    across = [x for curve in curves for x, _ in curve.points]
    up = [y for curve in curves for _, y in curve.points] + [y for c in curves for _, *ys in c.band for y in ys]
    if not across:
        return EMPTY
    frame = _Frame(axes, [curve.name for curve in curves])
    x_scale = _Scale(across, axes.log_x, frame.left, frame.right)
    y_scale = _Scale(_with_limits(up, axes), axes.log_y, frame.bottom, frame.top)
    parts = [*frame.parts, *_y_ticks(y_scale, frame)]
    for value in x_scale.ticks():
        parts.append(_text(x_scale(value), frame.bottom + 17, tick_text(value), "middle"))
    for curve, colour in zip(curves, _colours(len(curves)), strict=True):
        if curve.band:
            edge = [(x, low) for x, low, _ in curve.band] + [(x, high) for x, _, high in reversed(curve.band)]
            parts.append(f'<polygon fill="{colour}" fill-opacity=".18" points="{_line(edge, x_scale, y_scale)}"/>')
        line = _line(curve.points, x_scale, y_scale)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{line}"/>')
        if len(curve.points) <= 13:
            dots = [(x_scale(x), y_scale(y)) for x, y in curve.points]
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in dots]
    return "\n".join([*parts, "</svg>"]) + "\n"


def bar_plot(groups: Sequence[str], series: dict[str, list[Bar]], axes: Axes) -> str:
    """An SVG with a group of bars for each name in `groups`, in each a bar of every series."""
    heights = [height for bars in series.values() for bar in bars for height in (bar.height, bar.low, bar.high)]
    if not heights:
        return EMPTY
    frame = _Frame(axes, list(series) if len(series) > 1 else [], under=42.0)
    frame.top += 12  # for the number on the highest bar
    foot = [0.3 * min([height for height in heights if height > 0] or [1.0])] if axes.log_y else [0.0]
    scale = _Scale(_with_limits([*foot, *heights], axes), axes.log_y, frame.bottom, frame.top)
    parts = [*frame.parts, *_y_ticks(scale, frame)]
    room = (frame.right - frame.left) / len(groups)
    thick = min(46.0, room * 0.8 / len(series))
    ground = scale(scale.low if axes.log_y else max(scale.low, 0.0))
    for i, group in enumerate(groups):
        middle = frame.left + room * (i + 0.5)
        for line, part in enumerate(in_two_lines(group, room - 4)):
            parts.append(_text(middle, frame.bottom + 16 + 14 * line, part, "middle"))
        for j, (bars, colour) in enumerate(zip(series.values(), _colours(len(series)), strict=True)):
            x = middle + thick * (j - len(series) / 2)
            parts += _bar(bars[i], (x + thick * 0.06, thick * 0.88), ground, scale, colour)
    return "\n".join([*parts, "</svg>"]) + "\n"


def heat_map(cells: Sequence[Sequence[float]], axes: Axes, labels: tuple[Sequence[str], Sequence[str]]) -> str:
    """An SVG of a matrix, dark where it is large; `labels` of rows and columns. Small ones show their numbers."""
    flat = [cell for row in cells for cell in row]
    if not flat:
        return EMPTY
    frame = _Frame(axes, [], left=32 + max(LETTER * text_cells(name) for name in labels[0]))
    low = min(flat) if axes.low is None else axes.low
    span = max(1e-12, (max(flat) if axes.high is None else axes.high) - low)
    across, down = (frame.right - frame.left) / len(cells[0]), (frame.bottom - frame.top) / len(cells)
    parts = list(frame.parts)
    for i, row in enumerate(cells):
        y = frame.top + down * i
        parts.append(_text(frame.left - 6, y + down / 2 + 4, labels[0][i], "end"))
        for j, cell in enumerate(row):
            x, share = frame.left + across * j, min(1.0, max(0.0, (cell - low) / span))
            place = f'x="{x:.1f}" y="{y:.1f}" width="{across - 1:.1f}" height="{down - 1:.1f}"'
            parts.append(f'<rect {place} fill="{COLOURS[0]}" fill-opacity="{0.04 + 0.96 * share:.3f}"/>')
            if len(flat) <= 64 and across > 30:
                fill, kind = ("#fff", "") if share > 0.55 else ("#333", "ink")
                parts.append(_text(x + across / 2, y + down / 2 + 4, tick_text(cell), "middle", fill, kind))
    for j, name in enumerate(labels[1]):
        parts.append(_text(frame.left + across * (j + 0.5), frame.bottom + 17, shortened(name, across), "middle"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def side_by_side(pictures: Sequence[str], columns: int = 2) -> str:
    """Several pictures of one size in one."""
    if len(pictures) == 1:
        return pictures[0]
    width, height = (int(number) for number in pictures[0].split('viewBox="0 0 ', 1)[1].split('"', 1)[0].split())
    columns = min(columns, len(pictures))
    rows = math.ceil(len(pictures) / columns)
    parts = [f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {width * columns} {height * rows}">']
    for i, picture in enumerate(pictures):
        place = f'<svg x="{i % columns * width}" y="{i // columns * height}" width="{width}" height="{height}" '
        parts.append(picture.replace("<svg ", place, 1))
    return "\n".join([*parts, "</svg>"]) + "\n"


def png(svg: str, zoom: float = 2.0) -> bytes:
    """The same picture in pixels; letters come from the fonts of this machine."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise UserError("NO_PNG", "PNG needs resvg_py: pip install 'clearhead[png]', or take SVG", USAGE) from error
    return svg_to_bytes(svg_string=svg, zoom=zoom, background="white")


def tick_text(value: float) -> str:
    """A number as short as it can be read: 0.25, 40, 12,000, 1e-7."""
    if value and not 1e-3 <= abs(value) < 1e6:
        mantissa, exponent = f"{value:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}".rstrip("0").rstrip(".")


def text_cells(text: str) -> int:
    """How many letters' room a text takes; a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def shortened(text: str, room: float) -> str:
    """As much of a text as fits into so many pixels, with … for the rest."""
    if LETTER * text_cells(text) <= room:
        return text
    kept = text
    while kept and LETTER * (text_cells(kept) + 1) > room:
        kept = kept[:-1]
    return kept + "…" if kept else ""


def in_two_lines(text: str, room: float) -> list[str]:
    """A text that is too wide, broken where its halves are most equal; what is still too wide is shortened."""
    if LETTER * text_cells(text) <= room:
        return [text]
    places = [i + 1 for i, letter in enumerate(text[:-1]) if letter == " " or text_cells(letter) == 2]
    if not places:
        return [shortened(text, room)]
    best = min(places, key=lambda i: abs(text_cells(text[:i]) - text_cells(text[i:])))
    return [shortened(half.strip(), room) for half in (text[:best], text[best:])]


class _Scale:
    """Data to pixels, straight or logarithmic; what is not positive goes to the foot of a logarithmic one."""

    def __init__(self, values: Sequence[float], is_log: bool, first: float, last: float) -> None:
        self._is_log, self._first, self._last = is_log, first, last
        if is_log:
            positive = [value for value in values if value > 0] or [1.0]
            self.low, self.high = min(positive), max(positive)
            if self.low == self.high:
                self.low, self.high = self.low / 10, self.high * 10
        else:
            self.low, self.high = min(values), max(values)
            if self.low == self.high:
                self.high = self.low + (abs(self.low) or 1.0)

    def __call__(self, value: float) -> float:
        if self._is_log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self._first + (self._last - self._first) * share

    def ticks(self) -> list[float]:
        """Round numbers between the ends."""
        if self._is_log:
            return _powers(self.low, self.high)
        rough = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(rough))
        step = min((unit * factor for factor in (1, 2, 2.5, 5, 10)), key=lambda size: abs(size - rough))
        first = math.ceil(self.low / step - 1e-9)
        return [round(i * step, 12) for i in range(first, int(self.high / step + 1e-9) + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten, or of two where there are hardly any of those, or the ends where there is none."""
    decades = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    if len(decades) >= 3:
        return [10.0**power for power in decades[:: math.ceil(len(decades) / 6)]]
    doublings = range(math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9) + 1)
    if not doublings:
        return [low, high]
    return [2.0**power for power in doublings[:: math.ceil(len(doublings) / 7)]]


class _Frame:
    """Background, title, axis names and legend, and the room that they leave."""

    def __init__(self, axes: Axes, names: Sequence[str], left: float = 62.0, under: float = 28.0) -> None:
        rows = _legend_rows(names, axes.width - left - 16)
        legend = 18 * len(rows)
        self.left, self.right = left, axes.width - 16.0
        self.top = (34.0 if axes.title else 14.0) + legend
        self.bottom = axes.height - (46.0 if axes.x_name else under)
        self.parts = [
            f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {axes.width} {axes.height}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect class="paper" width="{axes.width}" height="{axes.height}" fill="#fff"/>',
        ]
        if axes.title:
            self.parts.append(_text(12, 20, axes.title, "start", weight="bold"))
        if axes.x_name:
            self.parts.append(_text((self.left + self.right) / 2, axes.height - 10, axes.x_name, "middle"))
        if axes.y_name:
            middle = (self.top + self.bottom) / 2
            turned = f' transform="rotate(-90 14 {middle:.1f})"'
            self.parts.append(_text(14, middle, axes.y_name, "middle").replace(">", turned + ">", 1))
        colours = _colours(len(names))
        for row, entries in enumerate(rows):
            y = (30 if axes.title else 10) + 18 * row + 8
            for x, i in entries:
                place = f'x="{self.left + x:.0f}" y="{y - 8}" width="10" height="10"'
                self.parts.append(f'<rect {place} fill="{colours[i]}"/>')
                self.parts.append(_text(self.left + x + 15, y + 1, names[i], "start"))


def _legend_rows(names: Sequence[str], room: float) -> list[list[tuple[float, int]]]:
    """Which entry stands where: (x, index) in each row."""
    rows: list[list[tuple[float, int]]] = []
    x = room + 1
    for i, name in enumerate(names):
        wide = 32 + LETTER * text_cells(name)
        if x + wide > room and (not rows or x > 0):
            rows.append([])
            x = 0.0
        rows[-1].append((x, i))
        x += wide
    return rows


def _with_limits(values: list[float], axes: Axes) -> list[float]:
    limits = [limit for limit in (axes.low, axes.high) if limit is not None]
    return [*values, *limits]


def _y_ticks(scale: _Scale, frame: _Frame) -> list[str]:
    parts = []
    for value in scale.ticks():
        y = scale(value)
        ends = f'x1="{frame.left:.1f}" x2="{frame.right:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
        parts.append(f'<line class="grid" {ends} stroke="#ddd"/>')
        parts.append(_text(frame.left - 6, y + 4, tick_text(value), "end"))
    return parts


def _bar(bar: Bar, place: tuple[float, float], ground: float, scale: _Scale, colour: str) -> list[str]:
    (x, thick), y = place, scale(bar.height)
    top, tall = min(y, ground), max(1.0, abs(ground - y))
    parts = [f'<rect x="{x:.1f}" y="{top:.1f}" width="{thick:.1f}" height="{tall:.1f}" fill="{colour}"/>']
    if bar.high > bar.low:
        middle = x + thick / 2
        ends = f'x1="{middle:.1f}" x2="{middle:.1f}" y1="{scale(bar.low):.1f}" y2="{scale(bar.high):.1f}"'
        parts.append(f'<line class="whisker" {ends} stroke="#333" stroke-width="1.5"/>')
    if thick >= 26:
        parts.append(_text(x + thick / 2, min(scale(bar.high), top) - 4, tick_text(bar.height), "middle"))
    return parts


def _line(points: Sequence[tuple[float, float]], x_scale: _Scale, y_scale: _Scale) -> str:
    return " ".join(f"{x_scale(x):.1f},{y_scale(y):.1f}" for x, y in points)


def _colours(count: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(count)]


def _text(
    x: float, y: float, text: str, anchor: str, fill: str = "#333", kind: str = "ink", weight: str = "normal"
) -> str:
    bold = f' font-weight="{weight}"' if weight != "normal" else ""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"{bold}>{escape(text)}</text>'
