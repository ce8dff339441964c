"""From translations of validation pairs, as they are and with noise, to what the model's scores mean."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clearhead.data.seen import Familiarity
from clearhead.decoding.calibration import NONSENSE, Calibration

KNOTS = 20  # at most
PAIRS_PER_KNOT = 10  # at least
LOW = 0.01  # the share of validation pairs that score less than `low`
FAMILIAR = 0.05  # the share of validation pairs that have more unseen pieces than what is taken for nonsense at least
FEW = 100  # with fewer pairs than these, their own hundredth is not to be seen
TOO_LONG = 0.0005  # the share of training targets that may be longer than the limit
SPARE = 5  # tokens more than that: who says the same in other words is not to be cut

LEAST_SURE = 0.1  # what is less sure than this is warned of, however unsure the model is of its validation pairs
ROUNDS = 3  # the curve and the sense are fitted in turn; after these they hardly change
STEPS = 30  # of Newton's method, each at most LONGEST_STEP in every direction
LONGEST_STEP = 0.7
PRIOR = 0.03  # the precision of weights, of features with a deviation of 1: they stay near 0 without reason
BELOW = (4.0, 3.0, 2.0, 1.5, 1.0, 0.5, 0.25)  # how far the curve goes on below the scores of validation pairs
STEEPEST, FLATTEST = 4.0, 0.3  # by what power of e it may fall for each unit of the score
RISES = np.array([1, -1, 1, 0])  # with the score and with familiarity; with the length it may do either
NEAR = 3  # so many places further, in order of length, is another reference of about the same length


@dataclass(frozen=True)
class Judged:
    """A translation that was made for calibration; without a reference there cannot be a right one."""

    score: float
    text: str
    reference: str | None
    source: Familiarity


def fit_calibration(
    scores: Sequence[float], translations: Sequence[str], references: Sequence[str], limit: tuple[float, float]
) -> Calibration:
    """Of translations with their scores; `limit` is the factor and offset of `length_limit`."""
    quality = _quality(translations, references)
    knots, confidences = _rising(np.array(scores, float), quality)
    return Calibration(knots, confidences, _low(np.array(scores, float)), *limit)


def fit_confidence(clean: Sequence[Judged], noisy: Sequence[Judged], limit: tuple[float, float]) -> Calibration:
    """A confidence that holds for validation pairs, `clean`, and for what is less like the training pairs, `noisy`.

    The curve over the score is that of the clean ones, and the sense is what makes it fit the others as well. Nothing
    is taken for nonsense that looks as familiar as validation pairs do: perhaps it is a language that was trained on.
    """
    familiar = float(np.quantile([one.source.unseen for one in clean], 1 - FAMILIAR))
    noisy = [one for one in noisy if one.reference is not None or one.source.unseen > familiar]
    everything = [*clean, *noisy]
    quality = _quality([one.text for one in everything], [one.reference for one in everything])
    scores = np.array([one.score for one in everything])
    lengths = np.log1p([len(one.text) for one in everything])
    first = slice(len(clean))  # the clean ones
    plain = Calibration(*_rising(scores[first], quality[first]), _low(scores[first]), *limit)
    per_length = _chance(clean)
    chance = np.minimum(per_length * lengths, 0.9)
    features = np.stack(
        [scores, [one.source.unseen for one in everything], [one.source.often for one in everything], lengths], axis=1
    )
    sense, weights = np.ones(len(everything)), np.zeros(1 + features.shape[1])
    fitted = plain
    for _ in range(ROUNDS):
        made_sense = np.maximum(sense[first], 0.5)
        likely = NONSENSE + (quality[first] - NONSENSE) / made_sense
        above = np.clip((likely - chance[first]) / (1 - chance[first]), -1, 1)
        curve = _with_tail(scores[first], above)
        fitted = replace(fitted, scores=curve[0], confidences=curve[1])
        likely = np.maximum(NONSENSE, chance + (1 - chance) * np.interp(scores, *curve))
        weights = _fit_sense(features, likely, quality)
        sense = _sigmoid(weights[0] + features @ weights[1:])
    fitted = replace(fitted, chance=per_length, sense=[float(weight) for weight in weights])
    found = np.array([fitted.confidence(one.score, one.source, len(one.text)) for one in clean])
    return replace(fitted, low_confidence=float(np.clip(_low(found), LEAST_SURE, 1)))


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


def _quality(translations: Sequence[str], references: Sequence[str | None]) -> np.ndarray:
    """chrF of each, from 0 to 1; NONSENSE where nothing can be right."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()
    pairs = zip(translations, references, strict=True)
    return np.array([NONSENSE if b is None else chrf.sentence_score(a, [b]).score / 100 for a, b in pairs])


def _chance(clean: Sequence[Judged]) -> float:
    """chrF of translations and references of other sentences of about this length, per logarithm of the length."""
    in_order = sorted((one for one in clean if one.text and one.reference), key=lambda one: len(one.reference or ""))
    if len(in_order) <= NEAR:
        return 0.0
    others = in_order[NEAR:] + in_order[:NEAR]
    found = _quality([one.text for one in in_order], [other.reference for other in others])
    return float(found.sum() / np.log1p([len(one.text) for one in in_order]).sum())


def _with_tail(scores: np.ndarray, quality: np.ndarray) -> tuple[list[float], list[float]]:
    """The rising curve, going on downwards as it falls on the whole: by a power of e for each unit of the score."""
    knots, values = _rising(scores, quality)
    values = [max(0.0, value) for value in values]
    rate = float(np.clip(_log_slope(scores, np.maximum(quality, 0)), FLATTEST, STEEPEST))
    tail = [knots[0] - further for further in BELOW]
    return [*tail, *knots], [*(values[0] * math.exp(rate * (score - knots[0])) for score in tail), *values]


def _log_slope(scores: np.ndarray, quality: np.ndarray) -> float:
    """b of quality ≈ exp(a + b · score), by quasi-likelihood (a Poisson regression)."""
    if scores.std() == 0 or quality.sum() == 0:
        return FLATTEST
    columns = np.stack([np.ones(len(scores)), scores - scores.mean()], axis=1)
    weights = np.array([math.log(quality.mean()), 0.0])
    for _ in range(STEPS):
        expected = np.exp(np.minimum(columns @ weights, 0))
        curvature = (columns * expected[:, None]).T @ columns + 1e-6 * np.eye(2)
        weights += np.clip(np.linalg.solve(curvature, columns.T @ (quality - expected)), -LONGEST_STEP, LONGEST_STEP)
    return float(weights[1])


def _fit_sense(features: np.ndarray, likely: np.ndarray, quality: np.ndarray) -> np.ndarray:
    """Weights of the logit of sense. Those that point the wrong way are left out: confidence rises with the score and
    with familiarity, whatever the sample says."""
    allowed = np.ones(features.shape[1], bool)
    while True:
        found = np.zeros(1 + features.shape[1])
        found[np.concatenate([[True], allowed])] = _maximise(features[:, allowed], likely, quality)
        wrong = allowed & (found[1:] * RISES < 0)
        if not wrong.any():
            return found
        allowed &= ~wrong


def _maximise(features: np.ndarray, likely: np.ndarray, quality: np.ndarray) -> np.ndarray:
    """Fisher scoring of a Bernoulli likelihood whose mean is NONSENSE + (likely - NONSENSE) · sense."""
    mean, deviation = features.mean(axis=0), features.std(axis=0) + 1e-9
    columns = np.concatenate([np.ones((len(features), 1)), (features - mean) / deviation], axis=1)
    weights = np.zeros(columns.shape[1])
    weights[0] = 1.0
    for _ in range(STEPS):
        sense = _sigmoid(columns @ weights)
        expected = np.clip(NONSENSE + (likely - NONSENSE) * sense, 1e-3, 1 - 1e-3)
        slope = columns * ((likely - NONSENSE) * sense * (1 - sense))[:, None]
        certain = 1 / (expected * (1 - expected))
        rise = slope.T @ (certain * (quality - expected)) - PRIOR * weights
        curvature = (slope * certain[:, None]).T @ slope + PRIOR * np.eye(len(weights))
        weights += np.clip(np.linalg.solve(curvature, rise), -LONGEST_STEP, LONGEST_STEP)
    weights[1:] /= deviation
    weights[0] -= float(weights[1:] @ mean)
    return weights


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(logits, -500, 500)))
