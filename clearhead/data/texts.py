"""Plain text files -> stretches of text to be continued, for models that have no source.

Lines stay lines, with their indentation: a stretch is as many of them as fit, and ends at a blank line if one is near.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from .corpus import Pair, Report, clean_lines
from .options import DataOptions

PER_TOKEN = 1.5  # characters of a stretch; source code has about 2.3, prose more
NEAR = 0.5  # a stretch that has this share of what it may have ends at the next blank line


def longest_stretch(options: DataOptions) -> int:
    """Characters that are hardly ever more tokens than `max_tokens`."""
    return options.max_tokens - 2 if options.tokenizer == "characters" else int(PER_TOKEN * options.max_tokens)


def read_texts(paths: Sequence[Path], report: Report, options: DataOptions) -> Iterator[Pair]:
    """Each stretch as the target of a pair whose source is empty; `line` is where it begins."""
    count = 0
    for path in paths:
        for line, text in _stretches(clean_lines(path, report), longest_stretch(options)):
            count += 1
            report.read = count
            if text.strip():
                yield Pair(line, "", text)
            else:
                report.drop("empty", line)


def _stretches(lines: Iterator[str | None], longest: int) -> Iterator[tuple[int, str]]:
    """The line with which a stretch begins, and its text; a line longer than a stretch is cut."""
    kept: list[str] = []
    size, start = 0, 1
    for number, line in enumerate(lines, 1):
        pieces = [line[i : i + longest] for i in range(0, len(line), longest)] if line else [""]
        for piece in pieces:
            is_break = not piece and size >= NEAR * longest
            if kept and (is_break or size + len(piece) + 1 > longest):
                yield start, "\n".join(kept).rstrip()
                kept, size = [], 0
            if not kept:
                if not piece.strip():
                    continue  # no stretch begins with nothing
                start = number
            kept.append(piece.rstrip())
            size += len(piece) + 1
    if kept:
        yield start, "\n".join(kept).rstrip()
