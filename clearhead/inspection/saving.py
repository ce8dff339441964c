"""Traces as files, by the ending of the name."""

import json
from collections.abc import Sequence
from pathlib import Path

from clearhead.checkpoint.disk import disk_errors
from clearhead.errors import USAGE, UserError
from clearhead.figures import png

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
    """cross:2:1 is a head, cross:2 all heads of a layer, cross all heads of all layers; counted from 0."""
    kind, *numbers = text.split(":")
    if kind not in ("encoder", "decoder", "cross") or len(numbers) > 2 or not all(n.isdecimal() for n in numbers):
        message = f"{text!r} names no head; expected encoder, decoder or cross, a layer and a head, such as cross:2:1"
        raise UserError("HEAD", message, USAGE)
    layer, head = [*map(int, numbers), None, None][:2]
    return kind, layer, head


def _figure(trace: Trace, head: HeadName | None) -> str:
    if head is not None:
        return trace.svg(*head)
    best = trace.aligning
    if best is None:
        raise UserError("HEAD", "this model has no attention to draw; it is an RNN without it", USAGE)
    return trace.svg(best.kind, best.layer, best.head)
