"""What is counted of a corpus' lines, against counting by hand."""

import numpy as np

from clearhead.data.line_statistics import count_lines
from clearhead.data.storage import Ragged, Side

SENTENCE = "This is a sentence. "


def side(lengths: list[int], texts: list[str]) -> Side:
    offsets, rows = np.cumsum([0, *lengths]), [text.encode() for text in texts]
    ids = Ragged(np.zeros(offsets[-1], np.uint32), offsets)
    return Side(ids, Ragged(np.frombuffer(b"".join(rows), np.uint8), np.cumsum([0, *map(len, rows)])))


def test_lines_are_counted() -> None:
    """101 lines of 1 to 101 tokens, each third of two sentences; their targets are half as long, one a tenth."""
    lengths = list(range(1, 102))
    texts = [(SENTENCE * (2 if length % 3 == 0 else 1)).strip() for length in lengths]
    targets = [length // 2 for length in lengths]
    targets[90] = 9
    lines = count_lines(side(lengths, texts), side(targets, texts), "en", seed=1)
    assert (lines.median, lines.long, lines.longest) == (51, 100, 101)
    assert lines.several == 33 / 101
    ratios = sorted(target / length for length, target in zip(lengths, targets, strict=True) if length >= 51)
    assert ratios[0] <= lines.least_ratio <= ratios[1]
    assert lines.least_ratio < 0.25
