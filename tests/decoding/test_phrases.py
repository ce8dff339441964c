"""Phrases that a target must contain, against exhaustive search and the definition.

V vocabulary.
"""

import random
from dataclasses import replace
from itertools import product

import pytest

from clearhead.data.batching import make_batch, pad_sources
from clearhead.data.tokenizer import BOS, EOS, PAD
from clearhead.decoding import DecodingOptions, Demand, Hypothesis, search
from clearhead.decoding.phrases import Phrases
from clearhead.decoding.scoring import score
from clearhead.model import ModelOptions
from tests.decoding.reference import (
    SOURCES,
    Ids,
    Model,
    assert_same,
    eloquent_model,
    log_probability,
    penalty,
)
from tests.samples import LSTM, PAPER, VARIANTS

pytestmark = pytest.mark.slow  # each of many models, searched in Python too

Demanded = list[list[Ids]]

TWO_KINDS: dict[str, ModelOptions] = {"transformer": PAPER, "rnn": replace(LSTM, cell="gru")}
# Of the words 3 to 6.
DEMANDED: dict[str, Demanded] = {
    "a word": [[[4]]],
    "words": [[[4, 6, 5]]],
    "two": [[[4]], [[6, 3]]],
    "alternatives": [[[4, 4], [5, 5], [6]]],
    "the same twice": [[[5]], [[5]]],
    "two words twice": [[[4, 5]], [[4, 5]]],
    "one begins inside the other": [[[4, 4, 5]], [[4]]],
    "one begins like the other": [[[4, 5]], [[4, 6]]],
    "one is the other's end": [[[4, 5], [6]], [[5]]],
}

each_kind = pytest.mark.parametrize("kind", TWO_KINDS.values(), ids=TWO_KINDS.keys())
each_demand = pytest.mark.parametrize("demanded", DEMANDED.values(), ids=DEMANDED.keys())
each_width = pytest.mark.parametrize("beam", [1, 2, 5])


def contains(target: Ids, phrases: Demanded) -> bool:
    """By trying each way to write the first phrase in each place, and the other phrases around it."""
    if not phrases:
        return True
    for way in phrases[0]:
        for i in range(len(target) - len(way) + 1):
            around = [*target[:i], PAD, *target[i + len(way) :]]  # no phrase reaches across
            if target[i : i + len(way)] == way and contains(around, phrases[1:]):
                return True
    return False


def words_missing(target: Ids, phrases: Demanded, words: Ids) -> int:
    """By trying all that could be added."""
    count = 0
    while not any(contains([*target, *more], phrases) for more in product(words, repeat=count)):
        count += 1
    return count


def some_phrases(rng: random.Random, V: int) -> Demanded:
    """Up to three phrases of up to three ways of up to three words, from a few words."""
    words = rng.sample(range(3, V), 4)
    return [
        [rng.choices(words, k=rng.randint(1, 3)) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 3))
    ]


def found_by(model: Model, options: DecodingOptions, demands: list[Demand]) -> list[list[Hypothesis]]:
    return search(model, *pad_sources(SOURCES[: len(demands)]), options, demands)


@pytest.mark.parametrize("demanded", [*DEMANDED.values(), [[[4, 4, 5]], [[4, 5]]]], ids=str)
def test_phrases_are_met_when_a_target_contains_them(demanded: Demanded) -> None:
    phrases, words = Phrases(demanded), [4, 5, 6, 3]
    for length in range(6):
        for target in product(words[: 7 - length], repeat=length):
            readings = phrases.start
            for word in target:
                readings = phrases.advance(readings, word)
            assert (phrases.missing(readings) == 0) == contains(list(target), demanded)


@each_demand
def test_as_many_words_are_missing_as_must_be_added(demanded: Demanded) -> None:
    phrases, words = Phrases(demanded), [4, 5, 6]
    for target in product(words, repeat=2):
        readings = phrases.start
        for word in target:
            readings = phrases.advance(readings, word)
        missing = words_missing(list(target), demanded, [3, *words])
        assert phrases.missing(readings) == missing
        if missing:
            after = [phrases.advance(readings, word) for word in phrases.next_words(readings)]
            assert min(phrases.missing(some) for some in after) == missing - 1


@each_demand
@each_kind
def test_a_huge_beam_is_exhaustive_search(kind: ModelOptions, demanded: Demanded) -> None:
    V, longest = 7, 4
    model = eloquent_model(replace(kind, target_vocabulary=V))
    words = [word for word in range(V) if word not in (PAD, BOS, EOS)]
    targets = [list(target) for length in range(longest + 1) for target in product(words, repeat=length)]
    targets = [target for target in targets if contains(target, demanded)]
    options = DecodingOptions(beam=173, n_best=3, max_length=longest)
    source = SOURCES[0]
    (found,) = search(model, *pad_sources([source]), options, [Demand(phrases=demanded)])
    log_p = [sum(tokens) for tokens in score(model, make_batch([(source, target) for target in targets]))]
    everything = [
        Hypothesis(target, total / penalty(len(target) + 1, options))
        for target, total in zip(targets, log_p, strict=True)
    ]
    assert_same(found, sorted(everything, key=lambda h: h.score, reverse=True)[:3])


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_every_phrase_is_there(variant: ModelOptions) -> None:
    model, rng = eloquent_model(variant), random.Random(13)
    demands = [Demand(phrases=some_phrases(rng, variant.target_vocabulary)) for _ in SOURCES]
    options = DecodingOptions(beam=3, n_best=2, max_length=17)
    for demand, found in zip(demands, found_by(model, options, demands), strict=True):
        assert found
        assert all(contains(h.tokens, demand.phrases) for h in found)


@each_kind
@each_width
def test_every_phrase_is_there_in_any_beam(kind: ModelOptions, beam: int) -> None:
    """All different, best first, and with the model's own log-probabilities."""
    model, rng = eloquent_model(kind, seed=3), random.Random(17)
    demands = [Demand(phrases=some_phrases(rng, kind.target_vocabulary)) for _ in SOURCES]
    options = DecodingOptions(beam=beam, n_best=beam, max_length=17, length_penalty="paper", alpha=0.6)
    for source, demand, found in zip(SOURCES, demands, found_by(model, options, demands), strict=True):
        assert len({tuple(h.tokens) for h in found}) == beam
        assert all(contains(h.tokens, demand.phrases) for h in found)
        assert not {PAD, BOS, EOS} & {token for h in found for token in h.tokens}
        expected = [log_probability(model, source, h.tokens) / penalty(len(h.tokens) + 1, options) for h in found]
        assert_same(found, [Hypothesis(h.tokens, s) for h, s in zip(found, expected, strict=True)])
        assert expected == pytest.approx(sorted(expected, reverse=True))


@each_kind
@each_width
def test_mixed_batches_are_alone(kind: ModelOptions, beam: int) -> None:
    model, rng = eloquent_model(kind), random.Random(19)
    phrases = [some_phrases(rng, kind.target_vocabulary) if i % 2 else [] for i in range(len(SOURCES))]
    demands = [Demand(prefix=[5, 6] if i % 3 == 1 else [], phrases=phrases[i]) for i in range(len(SOURCES))]
    options = DecodingOptions(beam=beam, n_best=beam, max_length=13)
    for source, demand, found in zip(SOURCES, demands, found_by(model, options, demands), strict=True):
        (alone,) = search(model, *pad_sources([source]), options, [demand])
        assert_same(found, alone)


@each_width
def test_without_phrases_nothing_changes(beam: int) -> None:
    model, options = eloquent_model(PAPER), DecodingOptions(beam=beam, n_best=beam, max_length=11)
    free = search(model, *pad_sources(SOURCES), options)
    assert search(model, *pad_sources(SOURCES), options, [Demand()] * len(SOURCES)) == free
    mixed = search(model, *pad_sources(SOURCES), options, [*[Demand()] * 6, Demand(phrases=[[[5]]])])
    for found, other in zip(mixed[:6], free[:6], strict=True):
        assert_same(found, other)


@each_width
def test_a_phrase_in_the_prefix_counts(beam: int) -> None:
    """Then nothing is left to be forced: with all of the beam searched, both searches find the best."""
    model = eloquent_model(replace(PAPER, target_vocabulary=7))
    options = DecodingOptions(beam=173, max_length=5)
    prefix = [4, 6, 5]
    phrases = [[[6, 5]], [[4]]]
    (expected,) = search(model, *pad_sources(SOURCES[:1]), options, [Demand(prefix)])
    (found,) = search(model, *pad_sources(SOURCES[:1]), options, [Demand(prefix, phrases)])
    assert_same(found, expected)
    narrow = replace(options, beam=beam)
    (h,) = search(model, *pad_sources(SOURCES[:1]), replace(narrow, max_length=3), [Demand(prefix, phrases)])[0]
    assert h.tokens == prefix
    (h,) = search(model, *pad_sources(SOURCES[:1]), narrow, [Demand(prefix, [[[5, 3]], [[6]]])])[0]
    assert h.tokens[:3] == prefix
    assert contains(h.tokens, [[[5, 3]], [[6]]])


@each_kind
@each_width
def test_phrases_and_length_limits(kind: ModelOptions, beam: int) -> None:
    """Four words of phrases in four, in five, in seven; in three not all of them fit, but there is a target."""
    model, phrases = eloquent_model(kind), [[[5, 9, 5]], [[12], [13, 13]]]
    demands = [Demand(phrases=phrases)] * len(SOURCES)
    options = DecodingOptions(beam=beam, n_best=beam)
    for least, most in ((0, 4), (0, 5), (7, 7), (11, 13)):
        for found in found_by(model, replace(options, min_length=least, max_length=most), demands):
            assert found
            assert all(contains(h.tokens, phrases) and least <= len(h.tokens) <= most for h in found)
    for found in found_by(model, replace(options, max_length=3), demands):
        assert found
        assert all(len(h.tokens) == 3 for h in found)
        assert all(any(contains(h.tokens, [phrase]) for phrase in phrases) for h in found)


@each_width
def test_a_model_that_never_or_always_wants_to_end(beam: int) -> None:
    phrases = [[[5, 9, 5]], [[12]]]
    for bias in (-1000, 1000):
        model = eloquent_model(PAPER)
        model.output.bias.data[EOS] = bias
        for (h,) in found_by(model, DecodingOptions(beam=beam, max_length=17), [Demand(phrases=phrases)] * 3):
            assert contains(h.tokens, phrases)
            assert len(h.tokens) == (17 if bias < 0 else 4)


@each_width
@pytest.mark.parametrize("n", [1, 2])
def test_a_phrase_beats_blocked_ngrams(beam: int, n: int) -> None:
    """5 5 5 and again 5 5 5; but what the model adds of its own repeats nothing."""
    model, phrases = eloquent_model(PAPER, seed=3), [[[5, 5, 5]], [[5, 5, 5]]]
    options = DecodingOptions(beam=beam, block_ngrams=n, min_length=11, max_length=13)
    for (h,) in found_by(model, options, [Demand(phrases=phrases)] * 3):
        assert contains(h.tokens, phrases)
        own = [word for word in h.tokens if word != 5]
        assert n > 1 or len(set(own)) == len(own)


def test_the_likelier_alternative_is_written() -> None:
    """After a prefix there is room for one more word: 4 or 11, whichever the model likes better."""
    model, options = eloquent_model(PAPER), DecodingOptions(beam=2, max_length=2)
    for source in SOURCES:
        expected = max(([7, 4], [7, 11]), key=lambda target: log_probability(model, source, target))
        (found,) = search(model, *pad_sources([source]), options, [Demand([7], [[[4], [11]]])])
        assert found[0].tokens == expected


def test_samples_cannot_be_made_to_contain_phrases() -> None:
    with pytest.raises(ValueError, match="phrases are demanded of samples"):
        found_by(eloquent_model(PAPER), DecodingOptions(temperature=1.0), [Demand(), Demand(phrases=[[[5]]])])


@pytest.mark.parametrize("phrase", [[], [[]], [[5], []], [[5, EOS]], [[PAD]]], ids=str)
def test_a_phrase_that_cannot_be_written(phrase: list[Ids]) -> None:
    with pytest.raises(ValueError, match=r"a phrase is \[.*\]; expected one or more ways to write it"):
        found_by(eloquent_model(PAPER), DecodingOptions(), [Demand(phrases=[phrase])])
