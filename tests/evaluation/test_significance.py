"""Intervals and p-values: against sacreBLEU's own, against theory, and where sacreBLEU's own are wrong."""

import random
from math import comb

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from clearhead.evaluation.scores import metrics_for
from clearhead.evaluation.significance import Counts, count, interval, p_value

pytestmark = pytest.mark.slow  # thousands of samples

WORDS = [f"{a}{b}" for a in "bdfgk" for b in ("alo", "enu", "iti", "oro", "uma")]
NAMES = ["bleu", "chrf", "ter", "error_rate", "exact_match"]


def references(sentences: int) -> list[str]:
    rng = random.Random(1)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 13))) for _ in range(sentences)]


def system(texts: list[str], wrong: float, seed: int) -> list[str]:
    """The texts with this share of the words replaced."""
    rng = random.Random(seed)
    return [" ".join("xyz" if rng.random() < wrong else word for word in text.split()) for text in texts]


def shares(values: list[int]) -> Counts:
    return Counts(np.array([[value, 1] for value in values], float), lambda total: float(total[0] / total[1]))


TEXTS = references(101)
GOOD, BAD, TWIN = (system(TEXTS, wrong, seed) for wrong, seed in ((0.2, 2), (0.4, 3), (0.2, 5)))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_scores_are_those_of_the_metrics(language: str) -> None:
    counts = count(GOOD, TEXTS, language)
    assert list(counts) == NAMES
    for name, metric in metrics_for(language).items():
        assert counts[name].score == pytest.approx(metric.corpus_score(GOOD, [TEXTS]).score, rel=1e-12)
        assert counts[name].signature == str(metric.get_signature())
    same = sum(ours == theirs for ours, theirs in zip(GOOD, TEXTS, strict=True))
    assert counts["exact_match"].score == same / len(TEXTS)


def test_the_error_rate_of_replaced_words_is_their_share() -> None:
    words = sum(len(text.split()) for text in TEXTS)
    wrong = sum(text.split().count("xyz") for text in GOOD)
    assert count(GOOD, TEXTS, "en")["error_rate"].score == pytest.approx(100 * wrong / words)
    assert count(["今天天气不好。"], ["今天 天气很好。"], "zh")["error_rate"].score == pytest.approx(100 / 7)


def test_bleu_of_text_in_tokens() -> None:
    ours, theirs = ["a well-known dog 's bone ."], ["a well - known dog 's bone ."]
    for tokenize in (None, "none"):
        expected = sacrebleu.corpus_bleu(ours, [theirs], tokenize=tokenize or "13a").score
        assert count(ours, theirs, "en", tokenize=tokenize)["bleu"].score == pytest.approx(expected)


def test_each_translation_needs_its_reference() -> None:
    with pytest.raises(ValueError):
        count(GOOD, TEXTS[1:], "en")


# -- intervals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_the_interval_is_as_wide_as_that_of_sacrebleu(name: str) -> None:
    low, high = interval(count(GOOD, TEXTS, "en")[name])
    theirs = metrics_for("en")[name].corpus_score(GOOD, [TEXTS], n_bootstrap=1000)
    assert (high - low) / 2 == pytest.approx(theirs._ci, rel=1e-4)  # it adds up in single precision


@pytest.mark.parametrize("name", NAMES)
def test_the_interval_contains_the_score_and_is_always_the_same(name: str) -> None:
    counts = count(GOOD, TEXTS, "en")[name]
    low, high = interval(counts)
    assert low < counts.score < high
    assert interval(counts) == (low, high)


def test_the_interval_of_a_share_is_the_binomial_one() -> None:
    low, high = interval(shares([1] * 300 + [0] * 700))
    deviation = (0.3 * 0.7 / 1000) ** 0.5
    assert (low, high) == pytest.approx((0.3 - 1.96 * deviation, 0.3 + 1.96 * deviation), abs=0.004)


def test_the_interval_of_one_sentence_is_a_point() -> None:
    counts = count(GOOD[:1], TEXTS[:1], "en")["chrf"]
    assert interval(counts) == (counts.score, counts.score)


# -- p-values -------------------------------------------------------------------------------------------------------


def p_values(ours: list[str], theirs: list[str], trials: int = 1000) -> dict[str, float]:
    one, other = count(ours, TEXTS, "en"), count(theirs, TEXTS, "en")
    return {name: p_value(one[name], other[name], trials) for name in NAMES}


def test_systems_that_clearly_differ() -> None:
    found = p_values(GOOD, BAD)
    assert all(found[name] < 0.002 for name in ("bleu", "chrf", "ter"))
    assert found["exact_match"] < 0.05


def test_equal_systems_differ_by_chance() -> None:
    assert set(p_values(GOOD, GOOD).values()) == {1.0}


def test_systems_that_differ_in_one_sentence_differ_by_chance() -> None:
    """sacreBLEU's own test gives 0.001 here."""
    assert set(p_values(TEXTS, [*TEXTS[:-1], "xyz"]).values()) == {1.0}


def test_systems_of_the_same_quality() -> None:
    assert all(value > 0.05 for value in p_values(GOOD, TWIN).values())


def test_who_is_compared_with_whom_does_not_matter() -> None:
    assert p_values(GOOD, TWIN) == pytest.approx(p_values(TWIN, GOOD), abs=0.05)


@pytest.mark.parametrize("other", [BAD, TWIN, system(TEXTS, 0.25, 11)])
def test_p_is_that_of_sacrebleu_where_differences_are_not_equal(other: list[str]) -> None:
    metrics: dict[str, Metric] = {name: m for name, m in metrics_for("en").items() if name != "ter"}
    test = PairedTest([("ours", GOOD), ("theirs", other)], metrics, [TEXTS], test_type="ar", n_samples=1000)
    _, scores = test()
    wanted = {"bleu": scores["BLEU"][1], "chrf": scores["chrF2"][1]}
    found = p_values(GOOD, other)
    for name, theirs in wanted.items():
        assert not isinstance(theirs, str)
        assert theirs.p_value == pytest.approx(found[name], abs=0.06)


def test_p_of_shares_is_that_of_the_sign_test() -> None:
    """13 sentences only ours has right, 4 only theirs: each of 17 may fall to either side."""
    ours, theirs = shares([1] * 13 + [0] * 4 + [1] * 30), shares([0] * 13 + [1] * 4 + [1] * 30)
    wanted = 2 * sum(comb(17, k) for k in range(5)) / 2**17
    assert p_value(ours, theirs) == pytest.approx(wanted, abs=0.01)


def test_trials_in_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = p_values(GOOD, TWIN)["chrf"]
    monkeypatch.setattr("clearhead.evaluation.significance.BLOCK", 101 * 7)
    assert p_values(GOOD, TWIN)["chrf"] == pytest.approx(whole, abs=0.05)
