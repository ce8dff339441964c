"""Signs of trouble in many translations: a row for each, worst first, as CSV, JSON or a page that sorts them."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from html import escape
from pathlib import Path

from clearhead.checkpoint.disk import disk_errors
from clearhead.errors import USAGE, UserError

from .report import policy
from .trace import Trace

STYLE = """:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:2rem}
table{border-collapse:collapse}
td,th{padding:.3rem .6rem;border-bottom:1px solid #8885;text-align:left;vertical-align:top}
th{position:sticky;top:0;background:Canvas}button{font:inherit;border:0;background:none;color:inherit;cursor:pointer}"""
# A press on a column's name sorts the rows by it; a second press turns the order round.
SCRIPT = """"use strict";
document.querySelectorAll("th").forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
  const body = document.querySelector("tbody"), down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const value = row => row.cells[column].textContent, number = text => text === "" ? -Infinity : Number(text);
  const rows = [...body.rows].sort((a, b) => {
    const x = number(value(a)), y = number(value(b));
    return down * (isNaN(x) || isNaN(y) ? value(a).localeCompare(value(b)) : x - y);
  });
  document.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
  body.append(...rows);
}));"""


@dataclass(frozen=True)
class Row:
    """One sentence."""

    line: int
    score: float  # mean log-probability of the target's tokens
    unread: int  # source words that the aligning head never looked at
    repeated: int  # runs of three tokens that come more than once
    low_contribution: int  # target words that would be nearly as likely without the source
    special_share: float | None  # of cross-attention, on <s> and </s>
    length_ratio: float
    unread_words: str
    source: str
    translation: str


NAMES = [field.name for field in fields(Row)]


def health_row(line: int, trace: Trace) -> Row:
    found = trace.health()
    words = [trace.source.tokens[i].text for i in found["unread"]]
    return Row(
        line=line,
        score=round(sum(step.logp for step in trace.steps) / len(trace.steps), 4),
        unread=len(words),
        repeated=len(found["repeated"]),
        low_contribution=len(found["low_contribution"]),
        special_share=None if found["special_share"] is None else round(found["special_share"], 4),
        length_ratio=round(found["length_ratio"], 3),
        unread_words=" ".join(words),
        source=trace.source.text,
        translation=trace.target.text,
    )


def write_health(rows: Iterable[Row], path: Path) -> None:
    """By the ending of the name; the least likely translation first."""
    ordered = [asdict(row) for row in sorted(rows, key=lambda row: row.score)]
    match path.suffix:
        case ".json":
            text = json.dumps(ordered, ensure_ascii=False, indent=1) + "\n"
        case ".csv":
            out = io.StringIO()
            writer = csv.DictWriter(out, NAMES)
            writer.writeheader()
            writer.writerows(ordered)
            text = out.getvalue()
        case ".html":
            text = _page(ordered)
        case _:
            raise UserError("ENDING", f"{path} ends in {path.suffix!r}; expected .html, .csv or .json", USAGE)
    with disk_errors(f"cannot write {path}", path.parent, len(text), "nothing"):
        path.write_text(text, encoding="utf-8", newline="")


def _page(rows: list[dict[str, object]]) -> str:
    def cell(value: object) -> str:
        return f"<td>{escape('' if value is None else str(value))}</td>"

    heads = "".join(f"<th><button>{name.replace('_', ' ')}</button></th>" for name in NAMES)
    body = "\n".join(f"<tr>{''.join(cell(row[name]) for name in NAMES)}</tr>" for row in rows)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">{policy([STYLE], [SCRIPT])}
<title>Clearhead: health of {len(rows):,} translations</title><style>{STYLE}</style></head>
<body><h1>Health of {len(rows):,} translations</h1><p>Hints, no proof. Press a column's name to sort by it.</p>
<table><thead><tr>{heads}</tr></thead><tbody>
{body}
</tbody></table><script>{SCRIPT}</script></body></html>
"""
