"""Plots as SVG text, made without a library, and any SVG as PNG."""

from clearhead.errors import USAGE, UserError

COLOURS = ("#4878a8", "#c44e52", "#6a9f58", "#8a6fb0")


def chart(curves: dict[str, list[tuple[float, float]]], width: int = 720, height: int = 360) -> str:
    """An SVG of up to four named curves."""
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>'
    last, low, high = max(x for x, _ in points), min(y for _, y in points), max(y for _, y in points)
    left, top, right, bottom = 56, 16, width - 16, height - 40
    span = max(1e-9, high - low)

    def place(across: float, value: float) -> str:
        x = left + (right - left) * across / max(1, last)
        return f"{x:.1f},{bottom - (bottom - top) * (value - low) / span:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i in range(5):
        value, across = low + span * i / 4, last * i / 4
        x, y = place(across, value).split(",")
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{float(y) + 4}" text-anchor="end">{value:.2f}</text>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{across:,.0f}</text>')
    for row, ((name, curve), colour) in enumerate(zip(curves.items(), COLOURS, strict=False)):
        line = " ".join(place(*point) for point in curve)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{line}"/>')
        parts.append(f'<text x="{right}" y="{top + 16 + 18 * row}" text-anchor="end" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def png(svg: str, zoom: float = 2.0) -> bytes:
    """The same picture in pixels; letters come from the fonts of this machine."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise UserError("NO_PNG", "PNG needs resvg_py: pip install 'clearhead[png]', or take SVG", USAGE) from error
    return svg_to_bytes(svg_string=svg, zoom=zoom, background="white")
