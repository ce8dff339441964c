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

from clearhead.decoding.calibration import Calibration
from clearhead.evaluation.calibration import SPARE, fit_calibration, length_limit
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
