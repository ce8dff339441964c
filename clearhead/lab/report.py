"""What experiments leave behind: NAME.json, NAME.svg, NAME.png and NAME.html of each, index.html of all."""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from clearhead.checkpoint.disk import disk_errors, require_space
from clearhead.errors import UserError
from clearhead.figures import png
from clearhead.versions import versions

from .drawing import draw_all
from .experiment import Cell, Experiment, Finding, Text
from .page import page
from .running import Result, Run

FORMAT = "lab/1"
TEXTS = ("title", "claim", "source", "did", "limits")
ROOM = 4 * 2**20  # bytes


def prepare_folder(out: Path) -> None:
    """Before minutes of work: can the results be written there?"""
    require_space(out, ROOM)


def write_result(result: Result, out: Path, command: str) -> list[str]:
    """Write the files of one experiment; what else there is to say."""
    name, picture = result.experiment.name, draw_all(result.finding(), "en")
    content = json.dumps(to_dict(result, command), ensure_ascii=False, indent=1, allow_nan=False)
    with _disk(out):
        (out / f"{name}.json").write_text(content + "\n", encoding="utf-8")
        (out / f"{name}.svg").write_text(picture, encoding="utf-8")
        (out / f"{name}.html").write_text(page([result], command), encoding="utf-8")
        try:
            (out / f"{name}.png").write_bytes(png(picture))
        except UserError as error:  # an extra that may be missing
            return [str(error)]
    return []


def write_index(results: Sequence[Result], out: Path, command: str) -> None:
    """One page of all results."""
    with _disk(out):
        (out / "index.html").write_text(page(results, command), encoding="utf-8")


def _disk(out: Path) -> AbstractContextManager[None]:
    return disk_errors(f"cannot write to {out}", out, None, "what was written before")


def to_dict(result: Result, command: str) -> dict[str, Any]:
    """All numbers, and what follows from them."""
    experiment, finding = result.experiment, result.finding()
    return {
        "format": FORMAT,
        "name": experiment.name,
        **{name: getattr(experiment, name)._asdict() for name in TEXTS},
        "verdict": finding.verdict,
        "summary": finding.summary._asdict(),
        "table": _table(finding),
        "runs": [vars(run) for run in result.runs],
        "command": command,
        "versions": versions(),
    }


def read_result(content: dict[str, Any], experiment: Experiment) -> Result:
    """The result that was written as `to_dict` has it."""
    return Result(experiment, [Run(**run) for run in content["runs"]])


def _table(finding: Finding) -> dict[str, Any]:
    columns = [column._asdict() for column in finding.table.columns]
    return {"columns": columns, "rows": [[_cell(cell) for cell in row] for row in finding.table.rows]}


def _cell(cell: Cell) -> dict[str, Any]:
    return cell._asdict() if isinstance(cell, Text) else {"values": list(cell.values)}
