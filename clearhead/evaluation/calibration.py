"""From translations of validation pairs to what the model's scores mean."""

import math
from collections.abc import Sequence

import numpy as np

from clearhead.decoding.calibration import Calibration

KNOTS = 20  # at most
PAIRS_PER_KNOT = 10  # at least
LOW = 0.01  # the share of validation pairs that score less than `low`
FEW = 100  # with fewer pairs than these, their own hundredth is not to be seen
TOO_LONG = 0.0005  # the share of training targets that may be longer than the limit
SPARE = 5  # tokens more than that: who says the same in other words is not to be cut


def fit_calibration(
    scores: Sequence[float], translations: Sequence[str], references: Sequence[str], limit: tuple[float, float]
) -> Calibration:
    """Of translations with their scores; `limit` is the factor and offset of `length_limit`."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()
    pairs = zip(translations, references, strict=True)
    quality = np.array([chrf.sentence_score(ours, [theirs]).score / 100 for ours, theirs in pairs])
    knots, confidences = _rising(np.array(scores, float), quality)
    return Calibration(knots, confidences, _low(np.array(scores, float)), *limit)


def length_limit(source_lengths: np.ndarray, target_lengths: np.ndarray) -> tuple[float, float]:
    """Factor and offset: at least 99.9 % of the targets are no longer than factor · source + offset.

    The factor is that of sentences of some length, so that a long source gets no more than it needs; the offset is
    what the short ones need.
    """
    long = source_lengths >= max(1, np.median(source_lengths))
    ratios = target_lengths[long] / source_lengths[long]
    factor = float(np.quantile(ratios, 1 - LOW, method="higher"))
    rest = np.quantile(target_lengths - factor * source_lengths, 1 - TOO_LONG, method="higher")
    return factor, float(max(0, math.ceil(rest)) + SPARE)


def _rising(scores: np.ndarray, quality: np.ndarray) -> tuple[list[float], list[float]]:
    """Mean score and mean quality of groups of neighbours; groups that would fall are pooled (isotonic regression)."""
    order = np.argsort(scores, kind="stable")
    groups = np.array_split(order, min(KNOTS, max(1, len(order) // PAIRS_PER_KNOT)))
    pooled: list[np.ndarray] = []
    for group in groups:
        pooled.append(group)
        while len(pooled) > 1 and not _rises(scores, quality, *pooled[-2:]):
            pooled[-2:] = [np.concatenate(pooled[-2:])]
    means = [min(1.0, float(quality[group].mean())) for group in pooled]
    return [float(scores[group].mean()) for group in pooled], means


def _rises(scores: np.ndarray, quality: np.ndarray, left: np.ndarray, right: np.ndarray) -> bool:
    return bool(scores[left].mean() < scores[right].mean() and quality[left].mean() < quality[right].mean())


def _low(scores: np.ndarray) -> float:
    """The hundredth of the scores; of few scores, if that is lower, what it would be if they were spread normally."""
    hundredth = float(np.quantile(scores, LOW))
    if len(scores) >= FEW:
        return hundredth
    return min(hundredth, float(scores.mean() - 2.326 * scores.std()))
