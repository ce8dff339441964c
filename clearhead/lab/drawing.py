"""Plots of a finding as SVG, in one language."""

from clearhead.figures import Axes, Bar, Curve, bar_plot, heat_map, line_plot, side_by_side

from .experiment import Bars, Finding, Lines, Plot, Spread, Text


def draw(plot: Plot, language: str) -> str:
    """One plot as SVG; `language` is en or zh."""

    def say(text: Text) -> str:
        return text.zh if language == "zh" else text.en

    if isinstance(plot, Lines):
        curves = [Curve(say(name), *_line_and_band(points)) for name, points in plot.curves]
        ends = plot.low, plot.high
        return line_plot(curves, Axes(say(plot.title), say(plot.x), say(plot.y), plot.log_x, plot.log_y, *ends))
    if isinstance(plot, Bars):
        bars = {say(name): [Bar(s.mean, s.low, s.high) for s in spreads] for name, spreads in plot.series}
        axes = Axes(say(plot.title), y_name=say(plot.y), log_y=plot.log_y, high=plot.high)
        return bar_plot([say(group) for group in plot.groups], bars, axes)
    rows = plot.row_names or [str(i) for i in range(len(plot.cells))]
    columns = plot.column_names or [str(i) for i in range(len(plot.cells[0]))]
    axes = Axes(say(plot.title), say(plot.columns), say(plot.rows), low=0.0, high=plot.high)
    return heat_map(plot.cells, axes, (rows, columns))


def draw_all(finding: Finding, language: str) -> str:
    """All plots of a finding in one picture."""
    return side_by_side([draw(plot, language) for plot in finding.plots])


def _line_and_band(
    points: list[tuple[float, Spread]],
) -> tuple[list[tuple[float, float]], list[tuple[float, float, float]]]:
    line = [(x, spread.mean) for x, spread in points]
    band = [(x, spread.low, spread.high) for x, spread in points]
    return line, band if any(low < high for _, low, high in band) else []
