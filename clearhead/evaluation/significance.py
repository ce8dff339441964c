"""How sure a score is (bootstrap), and whether two systems differ (approximate randomisation).

Both work on what a metric counts in each sentence: the counts are added up and scored anew, thousands of times.
A score of nearly the same text is then as good as a whole evaluation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .scores import edits, error_tokens, is_same, metrics_for

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

RESAMPLES = 1000
TRIALS = 10_000
SEED = 12345  # sacreBLEU's
BLOCK = 1 << 22  # numbers drawn at once
SLICE = 50  # sentences between two reports of progress
Tell = Callable[[str, int], None]


@dataclass(frozen=True)
class Counts:
    """What one metric counted in each sentence, (sentences, counts), and the score of such counts added up."""

    rows: np.ndarray
    score_of: Callable[[np.ndarray], float]
    signature: str = ""

    @property
    def score(self) -> float:
        return self.score_of(self.rows.sum(0))


def count(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str,
    tell: Tell = lambda *_: None,
    tokenize: str | None = None,
) -> dict[str, Counts]:
    """The counts of bleu, chrf, ter, error_rate and exact_match; the latter's score is a share, the others go to 100.

    `tell` hears of each metric how many sentences are done; TER takes up to a second for ten sentences of Chinese.
    """
    same = [[is_same(ours, theirs), 1] for ours, theirs in zip(hypotheses, references, strict=True)]
    counts = {
        name: _counts(metric, hypotheses, references, partial(tell, name))
        for name, metric in metrics_for(language, tokenize).items()
    }
    return {
        **counts,
        "error_rate": _errors(hypotheses, references, language),
        "exact_match": Counts(np.array(same, float), lambda total: float(total[0] / total[1])),
    }


def _counts(
    metric: "Metric", hypotheses: Sequence[str], references: Sequence[str], tell: Callable[[int], None]
) -> Counts:
    rows: list[list[float]] = []
    for start in range(0, len(references), SLICE):
        tell(start)
        some = slice(start, start + SLICE)
        rows += metric._extract_corpus_statistics(list(hypotheses[some]), [list(references[some])])
    # BLEU is written for lists; only there does it see that nothing matched.
    return Counts(
        np.array(rows, float),
        lambda total: float(metric._compute_score_from_stats(total.tolist()).score),
        str(metric.get_signature()),
    )


def _errors(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Counts:
    rows = []
    for ours, theirs in zip(hypotheses, references, strict=True):
        wanted = error_tokens(theirs, language)
        rows.append([edits(error_tokens(ours, language), wanted), len(wanted)])
    return Counts(np.array(rows, float), lambda total: float(100 * total[0] / max(1, total[1])))


def interval(counts: Counts, resamples: int = RESAMPLES) -> tuple[float, float]:
    """Where 95 % of the scores lie if the test set had been drawn again, out of its own sentences."""
    rng = np.random.default_rng(SEED)
    sentences = len(counts.rows)
    scores = []
    for _ in range(resamples):
        times_drawn = np.bincount(rng.integers(sentences, size=sentences), minlength=sentences)
        scores.append(counts.score_of(times_drawn @ counts.rows))
    scores.sort()
    tail = resamples // 40
    return scores[tail], scores[-tail - 1]


def p_value(ours: Counts, theirs: Counts, trials: int = TRIALS) -> float:
    """How often two systems differ at least so much if each sentence is given to one of them by chance.

    sacreBLEU's own test counts only larger differences, so that it finds two equal systems significantly different.
    """
    rng = np.random.default_rng(SEED)
    difference = theirs.rows - ours.rows
    real = abs(ours.score - theirs.score)
    as_large, done = 0, 0
    while done < trials:
        block = min(trials - done, max(1, BLOCK // len(difference)))
        moved = rng.integers(2, size=(block, len(difference)), dtype=np.int8) @ difference  # (block, counts)
        one, other = ours.rows.sum(0) + moved, theirs.rows.sum(0) - moved
        for left, right in zip(one, other, strict=True):
            as_large += abs(ours.score_of(left) - ours.score_of(right)) >= real - 1e-9
        done += block
    return (as_large + 1) / (trials + 1)
