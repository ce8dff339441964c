"""Sentences that no mark sets apart are found by what training has seen at the ends and beginnings of lines."""

import random
from dataclasses import replace

import numpy as np
import pytest

from clearhead.data.lines import Lines
from clearhead.data.options import DataOptions
from clearhead.data.seen import seen_pairs
from clearhead.data.storage import Ragged
from clearhead.data.tokenizer import train
from clearhead.translator.boundaries import Boundaries
from clearhead.translator.segments import Cutter

WHO, DOES, WHAT = ["Tom", "Mary", "He", "The dog"], ["likes", "saw", "sold"], ["old books", "the house", "a red car"]
SENTENCES = [f"{who} {does} {what}." for who in WHO for does in DOES for what in WHAT]
LINES = Lines(count=180, several=0.0, median=5, long=9, longest=11, least_ratio=0.5, capital=1.0, ended=1.0)


@pytest.fixture(scope="module")
def boundaries() -> Boundaries:
    tokenizer = train(SENTENCES, DataOptions(vocabulary=400), seed=1, vocabulary=400)
    ids = [tokenizer.encode(sentence) for sentence in SENTENCES * 5]
    offsets = np.cumsum([0, *map(len, ids)])
    seen = seen_pairs(Ragged(np.array([i for row in ids for i in row], np.uint32), offsets))
    return Boundaries(seen, tokenizer, LINES)


@pytest.mark.parametrize("seed", range(5))
def test_sentences_are_found_again(boundaries: Boundaries, seed: int) -> None:
    some = random.Random(seed).sample(SENTENCES, 4)
    for form in (str, str.lower):
        bare = [form(sentence.rstrip(".")) for sentence in some]
        text = " ".join(bare)
        cuts = boundaries.cut(text)
        starts, ends = [0, *(start for _, start in cuts)], [*(end for end, _ in cuts), len(text)]
        assert [text[start:end] for start, end in zip(starts, ends, strict=True)] == bare


def test_a_sentence_stays_whole(boundaries: Boundaries) -> None:
    assert not any(boundaries.cut(sentence.rstrip(".")) for sentence in SENTENCES)
    assert boundaries.cut("") == boundaries.cut("Tom") == boundaries.cut("Tom likes") == []


def test_only_lines_far_longer_than_most_and_without_a_mark_are_cut(boundaries: Boundaries) -> None:
    cutter = Cutter("en", lambda text: len(text.split()), 1000, replace(LINES, longest=99, long=99), boundaries)
    bare = [sentence.rstrip(".") for sentence in SENTENCES[:4]]
    found = cutter.cut(" ".join(bare))
    assert [segment.text for segment in found] == bare
    assert all(segment.is_unmarked and not segment.is_part for segment in found)
    for whole in (" ".join(bare[:2]), " ".join(bare) + "."):
        assert [segment.text for segment in cutter.cut(whole)] == [whole]
