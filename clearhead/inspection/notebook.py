"""A trace in a notebook: a table that needs neither scripts nor styles nor trust, and the whole report in a frame."""

from html import escape
from typing import Any

from .figure import colour
from .report import report
from .trace import Trace

MOST = 40  # rows and columns of the table


class Framed:
    """HTML that a notebook shows as it is."""

    def __init__(self, html: str) -> None:
        self._html = html

    def _repr_html_(self) -> str:
        return self._html


def framed(trace: Trace, height: int) -> Any:
    """The report in a frame of its own, cut off from the notebook's page."""
    page = escape(report([trace.to_dict()]), quote=True)
    return Framed(
        f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{page}" '
        f'style="width:100%;height:{int(height)}px;border:0"></iframe>'
    )


def table(trace: Trace) -> str:
    """The head that aligns best, or a sentence if the model has none."""
    head = f"<p>{escape(trace.source.text)}<br><b>{escape(trace.target.text)}</b></p>"
    best = trace.aligning
    if best is None:
        return head + "<p>This model has no attention to show.</p>"
    weights = trace.weights(best.kind, best.layer, best.head)[:MOST, :MOST]
    asking, read = (labels[:MOST] for labels in trace.labels(best.kind))
    rows = ["<tr><td></td>" + "".join(f"<td>{escape(text)}</td>" for text in read) + "</tr>"]
    for text, row in zip(asking, weights, strict=True):
        cells = "".join(
            f'<td style="background-color:{colour(share)};color:{"white" if share > 0.6 else "black"}">'
            f"{f'{share:.2f}' if share >= 0.1 else ''}</td>"
            for share in map(float, row)
        )
        rows.append(f"<tr><td>{escape(text)}</td>{cells}</tr>")
    about = f"Head {best.name} follows the words best. Rows: the word being written; columns: where the head looked."
    cut = f" The first {MOST} of each are shown." if max(map(len, trace.labels(best.kind))) > MOST else ""
    return f"{head}<p>{about}{cut}</p><table>{''.join(rows)}</table>"
