"""Traces as files, by the ending of the name."""

import json
from collections.abc import Sequence
from pathlib import Path

from clearhead.checkpoint.disk import disk_errors
from clearhead.errors import USAGE, UserError
from clearhead.figures import png

from .record import KINDS
from .report import report
from .trace import Trace

HeadName = tuple[str, int | None, int | None]


def save(traces: Sequence[Trace], path: Path, head: HeadName | None = None) -> None:
    """.html has all traces, to compare; .json, .svg and .png the first one; figures of `head`, else of the best."""
    first = traces[0]
    match path.suffix:
        case ".html":
            content = report([trace.to_dict() for trace in traces]).encode()
        case ".json":
            content = (json.dumps(first.to_dict(), ensure_ascii=False, allow_nan=False) + "\n").encode()
        case ".svg":
            content = _figure(first, head).encode()
        case ".png":
            content = png(_figure(first, head))
        case _:
            raise UserError("ENDING", f"{path} ends in {path.suffix!r}; expected .html, .json, .svg or .png", USAGE)
    with disk_errors(f"cannot write {path}", path.parent, len(content), "nothing"):
        path.write_bytes(content)


def parse_head(text: str) -> HeadName:
    """cross:2:1 is a head, cross:2 a layer, cross all of them; the text counts from 1, the result from 0."""
    kind, *numbers = text.split(":")
    is_counted = all(number.isdecimal() and int(number) for number in numbers)
    if kind not in KINDS or len(numbers) > 2 or not is_counted:
        kinds = "encoder, decoder or cross"
        message = f"{text!r} names no head; expected {kinds}, a layer and a head from 1, such as cross:2:1"
        raise UserError("HEAD", message, USAGE)
    layer, head = [*(int(number) - 1 for number in numbers), None, None][:2]
    return kind, layer, head


def _figure(trace: Trace, head: HeadName | None) -> str:
    if head is not None:
        return trace.svg(*head)
    best = trace.aligning
    if best is None:
        raise UserError("HEAD", "this model has no attention to draw; it is an RNN without it", USAGE)
    return trace.svg(best.kind, best.layer, best.head)
