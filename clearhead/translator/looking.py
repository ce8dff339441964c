"""`clearhead inspect`: a sentence translated, looked at, and shown in all the ways that were asked for."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from clearhead.errors import USAGE, UserError, warning_line
from clearhead.inspection.health import Row, health_row, write_health
from clearhead.inspection.saving import HeadName, parse_head, save
from clearhead.inspection.terminal import Style, lattice_lines, matrix, print_lines, print_trace, runners_up
from clearhead.inspection.trace import Trace
from clearhead.program import to_type
from clearhead.progress import progress

from .tasks import DOES
from .translator import Translator, load


@dataclass(frozen=True)
class Wanted:
    """What to look at, and how to show it."""

    target: str | None = None
    beam: int | None = None
    top: int | None = None
    steps: bool = False
    lattice: bool = False
    files: Sequence[Path] = field(default_factory=list)
    head: str | None = None
    compare: Path | None = None
    ascii: bool = False


def look(model: Path, text: str, wanted: Wanted) -> None:
    """Print what was seen, unless all that is wanted goes to files or, as JSON, to standard output."""
    head = parse_head(wanted.head) if wanted.head else None
    if text == "-":
        text = sys.stdin.read().strip()
    if wanted.compare and not any(path.suffix == ".html" for path in wanted.files):
        raise UserError("COMPARE", "two models are compared in the report; add --html FILE", USAGE)
    translator = load(model, engine="native")
    other = load(wanted.compare, engine="native") if wanted.compare else None
    if other is not None and other.task != translator.task:
        found = f"{model} was trained to {DOES[translator.task][0]}, {wanted.compare} to {DOES[other.task][0]}"
        message = f"{found}; expected two models that read the same; leave out --compare, or give another model"
        raise UserError("COMPARE", message, USAGE)
    trace = _trace(translator, text, wanted, head)
    traces = [trace]
    if other is not None:
        traces.append(_trace(other, text, wanted, None))
    if Path("-") in wanted.files:
        print(trace.to_json())
        return
    for path in wanted.files:
        save(traces, path, head)
        print(f"clearhead: wrote {path}", file=sys.stderr)
    if wanted.steps:
        for stop in translator.walk(trace):
            print(stop)
    elif wanted.top is not None or wanted.lattice:
        print(f"{trace.source.text}\n→ {trace.target.text}\n")
        print_lines([*(runners_up(trace) if wanted.top else []), *(lattice_lines(trace) if wanted.lattice else [])])
    elif head is not None and None not in head and not wanted.files:
        print_lines(matrix(trace, *_whole(head), Style.of_terminal(wanted.ascii)))
    else:
        print_trace(trace, plain_ascii=wanted.ascii)
        _say_next(model, text, wanted)


def look_at_lines(model: Path, text: str, out: Path, beam: int | None = None) -> None:
    """The health of every sentence of standard input that is not blank."""
    if text != "-":
        raise UserError(
            "HEALTH", "--health reads sentences from standard input; expected - in place of the text", USAGE
        )
    write_health([], out)  # whatever is wrong with the file is said before the work
    translator = load(model, engine="native")
    lines = [line.strip() for line in sys.stdin]
    rows = []
    with progress("looking") as bar:
        for number, line in enumerate(lines, 1):
            if line:
                rows += _health(translator, number, line, beam)
            bar.update(number, len(lines), "sentences")
    write_health(rows, out)
    print(f"clearhead: wrote {out}, {len(rows):,} sentences", file=sys.stderr)


def _health(translator: Translator, number: int, line: str, beam: int | None) -> list[Row]:
    """Nothing, and a warning, for a sentence that cannot be looked at: the others are."""
    try:
        return [health_row(number, translator.inspect(line, beam=beam))]
    except UserError as error:
        print(warning_line(error.code, f"line {number} is left out: {error}"), file=sys.stderr)
        return []


def _trace(translator: Translator, text: str, wanted: Wanted, head: HeadName | None) -> Trace:
    heads = [_whole(head)] if head is not None and None not in head else []
    trace = translator.inspect(text, wanted.target, wanted.beam, heads, wanted.top or 5)
    return replace(trace, command=shlex.join(["clearhead", *sys.argv[1:]]))


def _whole(head: HeadName) -> tuple[str, int, int]:
    kind, layer, number = head
    assert layer is not None
    assert number is not None
    return kind, layer, number


def _say_next(model: Path, text: str, wanted: Wanted) -> None:
    """Where the rest is to be seen."""
    if not any(path.suffix == ".html" for path in wanted.files):
        page = to_type("inspect", str(model), text, "--html", "report.html")
        print(f"\nEvery layer, head and number, in a page:  {page}", file=sys.stderr)
