"""Confidence and the warning of it are one number, so that they never contradict."""

import random
from dataclasses import asdict

import numpy as np
import pytest

from clearhead.data.seen import seen_pairs
from clearhead.data.storage import Ragged
from clearhead.decoding.calibration import Calibration
from clearhead.translator.confidence import Confidence
from clearhead.translator.draft import Attempt as Said
from clearhead.translator.translation import Decoded

from .stub import CALIBRATION, TOKENIZER, StubEngine, stub_translator

TEXTS = ["the cat sat", "a cat ate the hat", "the hat sat"]
IDS = [TOKENIZER.encode(text) for text in TEXTS]
SEEN = seen_pairs(Ragged(np.concatenate([np.array(ids, np.uint32) for ids in IDS]), np.cumsum([0, *map(len, IDS)])))
SENSIBLE = Calibration(
    **{**asdict(CALIBRATION), "chance": 0.03, "sense": [2.0, 1.0, -6.0, 0.2, 0.1], "low_confidence": 0.3}
)


def said(source: str, score: float) -> Said:
    ids = TOKENIZER.encode(source)
    return Said(source, score, Decoded(ids, ids))


def some(count: int) -> list[Said]:
    rng = random.Random(count)
    letters = "abcehst "
    return [
        said(rng.choice([*TEXTS, "".join(rng.choices(letters, k=rng.randint(1, 17)))]), -3 * rng.random())
        for _ in range(count)
    ]


def test_what_is_low_is_what_is_less_than_the_threshold() -> None:
    confidence = Confidence(SENSIBLE, SEEN)
    parts = some(997)
    low = [confidence.is_low(part) for part in parts]
    found = [confidence([part]) for part in parts]
    assert low == [one is not None and one < SENSIBLE.low_confidence for one in found]
    assert 0 < sum(low) < len(low)


def test_a_text_is_as_sure_as_its_least_sure_part() -> None:
    confidence, parts = Confidence(SENSIBLE, SEEN), some(7)
    assert confidence(parts) == min(confidence([part]) or 0.0 for part in parts)


def test_what_was_seen_is_surer_than_what_was_not() -> None:
    confidence = Confidence(SENSIBLE, SEEN)
    known, strange = confidence([said("the cat sat", -0.7)]), confidence([said("xqz vkw pfj", -0.7)])
    assert known is not None
    assert strange is not None
    assert known > 2 * strange


def test_old_models_are_as_sure_as_before() -> None:
    confidence = Confidence(CALIBRATION)
    for part in some(97):
        assert confidence([part]) == CALIBRATION.confidence(part.score)
        assert confidence.is_low(part) == CALIBRATION.is_low(part.score)


@pytest.mark.parametrize("confidence", [Confidence(None), Confidence(None, SEEN), Confidence(SENSIBLE, None)])
def test_what_cannot_be_known_is_neither_sure_nor_low(confidence: Confidence) -> None:
    assert confidence([said("the cat", -9.0)]) is None
    assert not confidence.is_low(said("the cat", -9.0))


def test_a_translator_warns_exactly_where_it_is_unsure() -> None:
    rng = random.Random(5)
    translator = stub_translator(StubEngine(score_of=lambda _: -3 * rng.random()))
    translator.calibration, translator.seen = SENSIBLE, SEEN
    texts = [part.text for part in some(97) if part.text.strip()]
    best = [found[0] for found in translator.alternatives(texts)]
    warned = ["low_confidence" in one.warnings for one in best]
    assert warned == [one.confidence is not None and one.confidence < SENSIBLE.low_confidence for one in best]
    assert {True, False} == set(warned)
