"""A test set out of its files, read as a corpus is: only \\n ends a line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.data.corpus import Report, read_pairs
from clearhead.errors import BAD_DATA, UserError


@dataclass(frozen=True)
class Parallel:
    """Sources and references, line by line; pairs of which one side is empty or no UTF-8 are left out."""

    sources: list[str]
    references: list[str]
    left_out: int


def read_parallel(files: Sequence[Path]) -> Parallel:
    """Two text files, or one .tsv or .jsonl."""
    report = Report()
    pairs = list(read_pairs(files, report))
    if not pairs:
        names = " and ".join(map(str, files))
        raise UserError("NOTHING_LEFT", f"{names} have no pair with text on both sides; check the files", BAD_DATA)
    return Parallel([pair.source for pair in pairs], [pair.target for pair in pairs], report.read - len(pairs))
