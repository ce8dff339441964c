"""What a model's scores mean: confidence, what is low, how long a target may be; and how that is fitted."""

import random
import subprocess
import sys
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from clearhead.data.seen import Familiarity
from clearhead.decoding.calibration import NONSENSE, Calibration
from clearhead.evaluation.calibration import (
    LEAST_SURE,
    SPARE,
    Judged,
    fit_calibration,
    fit_confidence,
    length_limit,
)
from clearhead.options import from_dict

VALUES: dict[str, Any] = {
    "scores": [-3.0, -1.0, -0.5],
    "confidences": [0.1, 0.5, 0.9],
    "low": -2.5,
    "length_factor": 1.5,
    "length_offset": 7.0,
}
CALIBRATION = Calibration(**VALUES)
WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "then", "goes", "home"]


# -- use ------------------------------------------------------------------------------------------------------------


def test_confidence_is_what_numpy_interpolates() -> None:
    for score in np.linspace(-4, 1, 101):
        wanted = np.interp(score, CALIBRATION.scores, CALIBRATION.confidences)
        assert CALIBRATION.confidence(float(score)) == pytest.approx(wanted, abs=1e-12)


def test_beyond_the_knots_confidence_is_that_of_the_last() -> None:
    assert CALIBRATION.confidence(-100.0) == 0.1
    assert CALIBRATION.confidence(float("-inf")) == 0.1
    assert CALIBRATION.confidence(0.0) == 0.9


def test_one_knot_is_one_confidence() -> None:
    flat = Calibration([-1.0], [0.4], -2.0, 1.0, 5.0)
    assert [flat.confidence(score) for score in (-7.0, -1.0, 0.0)] == [0.4, 0.4, 0.4]


def test_low_is_less_than_low() -> None:
    assert [CALIBRATION.is_low(score) for score in (-2.6, -2.5, -0.1)] == [True, False, False]


def test_the_longest_target_is_a_whole_number_of_at_least_one() -> None:
    assert CALIBRATION.longest(3) == 12
    assert Calibration([-1.0], [0.4], -2.0, 0.0, 0.0).longest(5) == 1


def test_config_and_back() -> None:
    assert from_dict(Calibration, asdict(CALIBRATION), "calibration") == CALIBRATION


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": []}, "found 0 scores and 3 confidences"),
        ({"confidences": [0.1, 0.5]}, "found 3 scores and 2 confidences"),
        ({"scores": [], "confidences": []}, "found 0 scores and 0 confidences"),
        ({"scores": [-3.0, -1.0, -1.0]}, "expected each to be more than the one before"),
        ({"confidences": [0.1, 0.9, 0.5]}, "expected them to rise"),
        ({"confidences": [0.1, 0.5, 1.1]}, "from 0 to 1 at most"),
        ({"confidences": [-0.1, 0.5, 1.0]}, "from 0 to 1 at most"),
        ({"confidences": [0.1, float("nan"), 0.5]}, "expected them to rise"),
        ({"low": float("-inf")}, "expected finite numbers"),
        ({"scores": [float("-inf"), -1.0, 0.0]}, "expected finite numbers"),
        ({"length_factor": -0.1}, "length_factor is -0.1; expected at least 0"),
        ({"length_offset": -1.0}, "length_offset is -1.0; expected at least 0"),
        ({"chance": -0.1}, "chance is -0.1; expected at least 0"),
        ({"sense": [1.0, 2.0]}, "sense has 2 numbers; expected none or 5"),
        ({"sense": [1.0, 2.0, 0.0, 0.0, float("inf")]}, "expected finite numbers"),
        ({"low_confidence": 1.5}, "low_confidence is 1.5; expected a number from 0 to 1"),
    ],
)
def test_what_cannot_be_a_calibration_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Calibration(**{**VALUES, **change})


@pytest.mark.slow
def test_it_needs_no_torch() -> None:
    code = (
        "import sys, clearhead.decoding.calibration, clearhead.evaluation.calibration; sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


SENSIBLE = Calibration(**VALUES, chance=0.04, sense=[1.0, 2.0, -5.0, 0.5, 0.1], low_confidence=0.2)


def test_confidence_rises_with_the_score_and_with_familiarity() -> None:
    for often in (0.0, 3.0, 7.0):
        for unseen in (0.0, 0.3, 0.9):
            by_score = [SENSIBLE.confidence(score, Familiarity(unseen, often), 31) for score in np.linspace(-5, 0, 53)]
            assert all(before <= after for before, after in pairwise(by_score))
    by_unseen = [SENSIBLE.confidence(-0.7, Familiarity(unseen, 3.0), 31) for unseen in np.linspace(0, 1, 53)]
    assert all(before > after for before, after in pairwise(by_unseen))
    by_often = [SENSIBLE.confidence(-0.7, Familiarity(0.3, often), 31) for often in np.linspace(0, 9, 53)]
    assert all(before < after for before, after in pairwise(by_often))


def test_confidence_stays_between_nonsense_and_one() -> None:
    for score in (float("-inf"), -1e9, -3.0, 0.0, 1.0):
        for length in (0, 1, 97, 10**9):
            for source in (Familiarity(0.0, 15.0), Familiarity(1.0, 0.0)):
                assert NONSENSE <= SENSIBLE.confidence(score, source, length) <= 1


def test_of_sense_without_doubt_it_is_the_curve_above_chance() -> None:
    sure = Calibration(**VALUES, chance=0.04, sense=[1000.0, 0.0, 0.0, 0.0, 0.0])
    for score in np.linspace(-4, 1, 31):
        chance = 0.04 * np.log(1 + 31)
        wanted = chance + (1 - chance) * CALIBRATION.confidence(float(score))
        assert sure.confidence(float(score), Familiarity(0.2, 3.0), 31) == pytest.approx(wanted)


# -- fit ------------------------------------------------------------------------------------------------------------


def translations(count: int, seed: int = 3) -> tuple[list[float], list[str], list[str]]:
    """Of which the share of right words is about exp(score)."""
    rng = random.Random(seed)
    scores = [-rng.random() * 3 for _ in range(count)]
    references = [[rng.choice(WORDS) for _ in range(rng.randint(3, 11))] for _ in range(count)]
    texts = [
        [word if rng.random() < np.exp(score) else "xyz" for word in words]
        for score, words in zip(scores, references, strict=True)
    ]
    return scores, [" ".join(words) for words in texts], [" ".join(words) for words in references]


def test_confidence_rises_with_the_score_in_few_knots() -> None:
    fitted = fit_calibration(*translations(997), (1.0, 5.0))
    assert 5 <= len(fitted.scores) <= 20
    assert all(before < after for before, after in pairwise(fitted.confidences))
    assert (fitted.length_factor, fitted.length_offset) == (1.0, 5.0)


def test_confidence_is_the_chrf_that_new_translations_have() -> None:
    """Of other translations by the same model, in four groups from unsure to sure."""
    fitted = fit_calibration(*translations(997), (1.0, 5.0))
    scores, texts, references = translations(997, seed=5)
    groups = np.array_split(np.argsort(scores), 4)
    for group in groups:
        found = np.mean([CHRF().sentence_score(texts[i], [references[i]]).score / 100 for i in group])
        expected = np.mean([fitted.confidence(scores[i]) for i in group])
        assert expected == pytest.approx(found, abs=0.04)


def test_the_fit_is_the_least_squares_one_of_all_that_rise() -> None:
    """Pool adjacent violators against the min-max formula of isotonic regression, on the same groups."""
    scores, texts, references = translations(61, seed=7)
    fitted = fit_calibration(scores, texts, references, (1.0, 5.0))
    order = np.argsort(scores)
    groups = np.array_split(order, 6)
    quality = np.array([CHRF().sentence_score(a, [b]).score / 100 for a, b in zip(texts, references, strict=True)])
    for place in range(6):
        wanted = max(
            min(quality[np.concatenate(groups[i : j + 1])].mean() for j in range(place, 6)) for i in range(place + 1)
        )
        assert any(value == pytest.approx(wanted, abs=1e-9) for value in fitted.confidences), place


def test_a_score_that_says_nothing_has_one_confidence() -> None:
    scores, texts, references = translations(97)
    fitted = fit_calibration([-score for score in scores], texts, references, (1.0, 5.0))  # better is worse
    assert len(fitted.scores) == 1
    same = fit_calibration([-1.0] * 97, texts, references, (1.0, 5.0))
    assert same.scores == [-1.0]
    assert not same.is_low(-1.0)


def test_one_of_a_hundred_is_low() -> None:
    scores, texts, references = translations(997)
    fitted = fit_calibration(scores, texts, references, (1.0, 5.0))
    assert sum(map(fitted.is_low, scores)) == 10


@pytest.mark.parametrize("pairs", [1, 2, 7, 31])
def test_few_pairs_are_enough_and_none_of_them_is_low(pairs: int) -> None:
    scores, texts, references = translations(pairs)
    fitted = fit_calibration(scores, texts, references, (1.0, 5.0))
    assert not any(map(fitted.is_low, scores))
    assert fitted.is_low(min(scores) - 3)


def test_translations_that_are_all_right_or_all_empty() -> None:
    scores, _, references = translations(23)
    assert fit_calibration(scores, references, references, (1.0, 5.0)).confidences == [1.0]
    assert fit_calibration(scores, [""] * 23, references, (1.0, 5.0)).confidences == [0.0]


# -- with noise -----------------------------------------------------------------------------------------------------


def judged(count: int, seed: int, familiar: float, spread: float = 0.1, makes_sense: bool = True) -> list[Judged]:
    """Translations of sources of which about so much was seen, and that are right if they make sense."""
    rng = random.Random(seed)
    shift = 0 if makes_sense else -1.0
    scores, texts, references = translations(count, seed)
    found = []
    for score, text, reference in zip(scores, texts, references, strict=True):
        unseen = min(1.0, max(0.0, 1 - familiar + rng.gauss(0, spread)))
        source = Familiarity(unseen, 6 * (1 - unseen))
        found.append(Judged(score + shift, text, reference if makes_sense else None, source))
    return found


def confidences(fitted: Calibration, some: list[Judged]) -> np.ndarray:
    return np.array([fitted.confidence(one.score, one.source, len(one.text)) for one in some])


def chrf_of(some: list[Judged]) -> np.ndarray:
    return np.array([CHRF().sentence_score(one.text, [one.reference or ""]).score / 100 for one in some])


def test_nonsense_is_told_from_a_hard_sentence_and_shifted_text_is_calibrated() -> None:
    """The same scores, on the whole; only what was seen differs. Measured on other draws than those of the fit."""
    fitted = fit_confidence(
        judged(499, 3, 0.95), [*judged(199, 5, 0.7), *judged(199, 7, 0.2, makes_sense=False)], (1, 5)
    )
    clean, shifted, nonsense = judged(499, 11, 0.95), judged(499, 13, 0.7), judged(499, 17, 0.2, makes_sense=False)
    assert np.mean(confidences(fitted, nonsense) < 0.1) >= 0.95
    assert np.mean(confidences(fitted, nonsense) < fitted.low_confidence) >= 0.95
    for some in (clean, shifted):
        found, quality = confidences(fitted, some), chrf_of(some)
        groups = np.array_split(np.argsort(found), 5)
        assert np.mean([abs(found[group].mean() - quality[group].mean()) for group in groups]) < 0.06


def test_hardly_a_validation_pair_is_low_but_all_that_is_less_than_a_tenth_sure() -> None:
    clean = judged(499, 3, 0.95)
    fitted = fit_confidence(clean, judged(199, 7, 0.2, makes_sense=False), (1, 5))
    found = confidences(fitted, clean)
    assert fitted.low_confidence >= LEAST_SURE
    assert np.mean(found < fitted.low_confidence) <= max(0.011, float(np.mean(found < LEAST_SURE)))


def test_what_looks_familiar_is_not_taken_for_nonsense() -> None:
    """As where both directions of a pair of languages are in one corpus, and targets are sources too."""
    clean = judged(199, 3, 0.95)
    own = judged(199, 7, 0.95, spread=0.0, makes_sense=False)
    assert fit_confidence(clean, own, (1, 5)) == fit_confidence(clean, [], (1, 5))


@pytest.mark.parametrize("pairs", [1, 2, 7, 31])
def test_few_pairs_with_noise_are_enough(pairs: int) -> None:
    clean = judged(pairs, 3, 0.95)
    for noisy in ([], judged(pairs, 5, 0.2, makes_sense=False), judged(pairs, 5, 0.5)):
        found = confidences(fit_confidence(clean, noisy, (1, 5)), clean)
        assert np.isfinite(found).all()
    same = [Judged(-1.0, "a b", "a b", Familiarity(0.0, 5.0))] * pairs
    assert (confidences(fit_confidence(same, [], (1, 5)), same) > 0.7).all()


# -- lengths --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", [1, 3, 101, 9973])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.3])
def test_F39_hardly_a_target_is_longer_than_the_limit(pairs: int, ratio: float) -> None:
    rng = np.random.default_rng(pairs)
    sources = rng.integers(1, 60, pairs)
    targets = np.maximum(1, np.round(sources * ratio * rng.lognormal(0, 0.2, pairs) + rng.integers(0, 4, pairs)))
    factor, offset = length_limit(sources, targets)
    limit = Calibration([-1.0], [0.5], -2.0, factor, offset)
    within = [target <= limit.longest(int(source)) for source, target in zip(sources, targets, strict=True)]
    assert np.mean(within) >= 0.999
    assert limit.longest(100) < 4 * ratio * 100 + 20  # and it is a limit


def test_short_sources_do_not_make_the_limit_of_long_ones_loose() -> None:
    sources, targets = np.array([1] * 50 + [40] * 50), np.array([9] * 50 + [40] * 50)
    factor, offset = length_limit(sources, targets)
    assert (factor, offset) == (1.0, 8.0 + SPARE)
