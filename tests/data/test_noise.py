"""Noise is a pure function of seed, epoch and place, and each kind does what its name says."""

import random
from collections import Counter
from difflib import SequenceMatcher

import pytest

from clearhead.data.foreign import FOREIGN, foreign_lines
from clearhead.data.noise import capitals, inventor, kinds, marks, noisy, pick, typos

TEXTS = ["The quick brown fox jumps over a lazy dog.", "Where is the next station?", "I do not know that, Tom."] * 7
PIECES = [" the", "qu", "ick", " dog", "."]
KINDS = kinds(TEXTS, "en", PIECES)
TEXT = "She has never seen the other side of the river."


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_place_is_changed_alike_and_another_epoch_otherwise(kind: str) -> None:
    again = kinds(TEXTS, "en", PIECES)[kind]
    first = [noisy(TEXT, KINDS[kind], 3, 0, place) for place in range(23)]
    assert first == [noisy(TEXT, again, 3, 0, place) for place in range(23)]
    assert first != [noisy(TEXT, KINDS[kind], 3, 1, place) for place in range(23)]
    assert first != [noisy(TEXT, KINDS[kind], 5, 0, place) for place in range(23)]
    assert all(text.strip() for text in first)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", " ", "a", "7", "?", "你好。", "ß", "  x  ", "🙂"])
def test_no_text_is_too_odd(kind: str, text: str) -> None:
    for place in range(11):
        noisy(text, KINDS[kind], 1, 0, place)


def test_typos_are_few() -> None:
    for seed in range(97):
        changed = typos(TEXT, random.Random(seed))
        assert SequenceMatcher(None, TEXT, changed, autojunk=False).ratio() > 0.8


def test_capitals_and_marks_keep_the_letters() -> None:
    for seed in range(97):
        assert capitals(TEXT, random.Random(seed)).lower() == TEXT.lower()
        bare = marks(TEXT, random.Random(seed)).replace(" ", "").rstrip(".")
        assert bare == TEXT.replace(" ", "").rstrip(".")


def test_another_domain_has_words_that_the_texts_do_not_have() -> None:
    words = {word.strip(".,?").lower() for text in TEXTS for word in text.split()}
    strange = 0
    for place in range(31):
        found = noisy(TEXTS[0], KINDS["another_domain"], 1, 0, place).rstrip(".").split()
        assert len(found) == len(TEXTS[0].split())
        strange += sum(word.lower() not in words for word in found)
    assert strange > 31


def test_an_invented_word_looks_like_the_others() -> None:
    words = ["banana", "bandana", "nabana", "danaban"]
    invent = inventor(words)
    found = {invent(random.Random(seed)) for seed in range(53)}
    assert found - set(words)
    assert all(set(word) <= set("banda") for word in found)


def test_no_text_of_the_own_language_is_taken_for_another() -> None:
    assert set(foreign_lines("en-GB")) == FOREIGN.keys() - {"en"}
    assert foreign_lines("und").keys() == FOREIGN.keys()


def test_only_what_can_still_be_translated_keeps_its_target() -> None:
    assert {name for name, noise in KINDS.items() if not noise.keeps_target} == {"nonsense", "another_language"}


def test_kinds_are_picked_at_their_rates() -> None:
    picked = Counter(pick({"typos": 0.1, "marks": 0.2}, 1, 0, place) for place in range(9973))
    assert picked["typos"] == pytest.approx(997, abs=100)
    assert picked["marks"] == pytest.approx(1995, abs=150)
    assert picked[None] + picked["typos"] + picked["marks"] == 9973
