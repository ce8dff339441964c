"""Counts what the source lines of a prepared corpus are."""

import numpy as np

from .lines import Lines
from .sentences import sentences
from .storage import Side

FINAL_MARKS = (".", "!", "?", "…", "。", "！", "？", "।", "؟")
COUNTED = 20_000  # lines are cut into sentences, to count those that have several
LONG = 0.99  # of the lines are no longer than what counts as long
SHORT_TARGETS = 0.005  # of the targets are shorter than the least ratio says


def count_lines(source: Side, target: Side, language: str, seed: int) -> Lines:
    """Of pairs with ids on both sides; `seed` picks the lines that are cut into sentences."""
    rows = np.random.default_rng(seed).permutation(len(source.ids))[:COUNTED]
    texts = [source.string(row) for row in sorted(rows.tolist())]
    starts = [text[:1] for text in texts if text[:1].lower() != text[:1].upper()]
    lengths, of_targets = source.ids.lengths, target.ids.lengths
    median = int(np.median(lengths))
    ratios = (of_targets / np.maximum(lengths, 1))[lengths >= median]
    return Lines(
        count=len(source.ids),
        several=sum(len(sentences(text, language)) > 1 for text in texts) / len(texts),
        median=median,
        long=int(np.quantile(lengths, LONG, method="higher")),
        longest=int(lengths.max()),
        least_ratio=float(np.quantile(ratios, SHORT_TARGETS)),
        capital=sum(map(str.isupper, starts)) / max(1, len(starts)),
        ended=sum(text.endswith(FINAL_MARKS) for text in texts) / len(texts),
    )
