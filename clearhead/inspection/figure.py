"""Heads as SVG figures for a paper: one with its tokens, or a grid of layers and heads."""

from html import escape

import numpy as np

from clearhead.errors import USAGE, UserError

from .trace import Trace

FONTS = (
    "system-ui, 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', 'WenQuanYi Micro Hei', sans-serif"
)
TITLE = {"encoder": "encoder self-attention", "decoder": "decoder self-attention", "cross": "cross-attention"}
CELL = 24
# Dark blue over grey to yellow: the order is seen without hue, in print and by the colour-blind.
STOPS = np.array([[253, 252, 244], [238, 222, 120], [176, 165, 113], [100, 103, 112], [0, 32, 76]])


def head_figure(trace: Trace, kind: str, layer: int, head: int) -> str:
    """The matrix of one head: rows ask, columns are read."""
    weights = trace.weights(kind, layer, head)
    asking, read = trace.labels(kind)
    left, top = 24 + 9 * max(map(_width, asking)), 56 + 9 * max(map(_width, read))
    width, height = left + CELL * len(read) + 56, top + CELL * len(asking) + 16
    parts = [_text(12, 20, f"{TITLE[kind]}, layer {layer + 1}, head {head + 1}", size=14)]
    for column, text in enumerate(read):
        x, y = left + CELL * column + CELL / 2 + 4, top - 6
        parts.append(f'<g transform="translate({x:.0f} {y}) rotate(-60)">{_text(0, 0, text)}</g>')
    for row, text in enumerate(asking):
        parts.append(_text(left - 6, top + CELL * row + CELL / 2 + 4, text, anchor="end"))
    parts += _cells(weights, left, top, CELL)
    parts += _scale(left + CELL * len(read) + 16, top, min(160, CELL * len(asking)))
    return _document(width, height, parts)


def heads_figure(trace: Trace, kind: str, layer: int | None = None) -> str:
    """All heads of a kind, a row for each layer; or of one layer."""
    layers = [place.layer for place in trace.attention if place.kind == kind and layer in (None, place.layer)]
    if not layers:
        trace.weights(kind, 0 if layer is None else layer, 0)  # says what there is
        raise UserError("HEAD", f"there is no {kind} attention to draw", USAGE)
    heads = len(next(weights for place, weights in trace.attention.items() if place.kind == kind))
    Q, K = trace.weights(kind, layers[0], 0).shape
    cell = max(2.0, min(10.0, 120 / max(Q, K)))
    across, down = cell * K + 16, cell * Q + 16
    letters = int((80 + across * heads) / 9)
    title = f"{TITLE[kind]}: {trace.source.text}"
    parts = [_text(12, 20, title if len(title) <= letters else title[: letters - 1] + "…", size=14)]
    for head in range(heads):
        parts.append(_text(64 + across * head + cell * K / 2, 46, f"head {head + 1}", anchor="middle"))
    for row, one in enumerate(sorted(layers)):
        parts.append(_text(56, 60 + down * row + cell * Q / 2, f"layer {one + 1}", anchor="end"))
        for head in range(heads):
            parts += _cells(trace.weights(kind, one, head), 64 + across * head, 54 + down * row, cell)
    return _document(80 + across * heads, 64 + down * len(layers), parts)


def colour(share: float) -> str:
    """From paper to dark blue."""
    place = min(max(share, 0.0), 1.0) * (len(STOPS) - 1)
    low = min(int(place), len(STOPS) - 2)
    red, green, blue = np.rint(STOPS[low] + (STOPS[low + 1] - STOPS[low]) * (place - low)).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _cells(weights: np.ndarray, left: float, top: float, cell: float) -> list[str]:
    """One rectangle for each weight that can be seen, on a ground of nothing; the value is its title."""
    Q, K = weights.shape
    ground = f'<rect x="{left:.1f}" y="{top:.1f}" width="{cell * K:.1f}" height="{cell * Q:.1f}"'
    parts = [f'{ground} fill="{colour(0)}"/>']
    for row, column in zip(*np.nonzero(weights >= 0.005), strict=True):
        share = float(weights[row, column])
        place = f'x="{left + cell * column:.1f}" y="{top + cell * row:.1f}" width="{cell:.1f}" height="{cell:.1f}"'
        cell_is = f'data-query="{row}" data-key="{column}"'
        parts.append(f'<rect {place} fill="{colour(share)}" {cell_is}><title>{share:.3f}</title></rect>')
    return [*parts, f'{ground} fill="none" stroke="#999" stroke-width="0.5"/>']


def _scale(left: float, top: float, height: float) -> list[str]:
    steps = 20
    parts = []
    for step in range(steps):
        y = top + height * (steps - 1 - step) / steps
        parts.append(
            f'<rect x="{left}" y="{y:.1f}" width="10" height="{height / steps + 0.5:.1f}" '
            f'fill="{colour((step + 0.5) / steps)}"/>'
        )
    return [*parts, _text(left + 14, top + 8, "1"), _text(left + 14, top + height, "0")]


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _width(text: str) -> float:
    """In letters of a usual width; Chinese is wider."""
    return sum(1.5 if ord(character) > 0x2E80 else 0.85 for character in text)


def _document(width: float, height: float, parts: list[str]) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    ground = f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONTS}">'
    return "\n".join([head, ground, *parts, "</svg>"]) + "\n"
