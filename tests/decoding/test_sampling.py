"""Sampling: the right distribution, the same result for the same seed, and greedy search at its limit.

V vocabulary.
"""

from dataclasses import replace
from math import exp, sqrt

import pytest
import torch

from clearhead.data.batching import pad_sources
from clearhead.data.tokenizer import BOS, EOS, PAD
from clearhead.decoding import DecodingOptions, Demand, Hypothesis, search
from clearhead.decoding.sampling import draw
from clearhead.model import ModelOptions
from tests.decoding.reference import (
    SOURCES,
    assert_same,
    eloquent_model,
    log_probability,
    next_log_probabilities,
    penalty,
)
from tests.samples import LSTM, PAPER, VARIANTS

TWO_KINDS: dict[str, ModelOptions] = {"transformer": PAPER, "rnn": replace(LSTM, cell="gru")}
RESTRICTIONS = {
    "none": DecodingOptions(temperature=1.0),
    "cold": DecodingOptions(temperature=0.5),
    "hot": DecodingOptions(temperature=3.0),
    "top_k": DecodingOptions(temperature=1.3, top_k=5),
    "top_p": DecodingOptions(temperature=1.3, top_p=0.7),
    "top_k, top_p": DecodingOptions(temperature=0.9, top_k=7, top_p=0.8),
    "top_k of all": DecodingOptions(temperature=0.9, top_k=1000),
    "top_p of one": DecodingOptions(temperature=1.0, top_p=0.001),
}

each_kind = pytest.mark.parametrize("kind", TWO_KINDS.values(), ids=TWO_KINDS.keys())
each_restriction = pytest.mark.parametrize("options", RESTRICTIONS.values(), ids=RESTRICTIONS.keys())


def restricted(logits: list[float], options: DecodingOptions) -> list[float]:
    """The probability of each word, as the definitions of temperature, top-k and top-p read."""
    assert options.temperature is not None
    p = [exp(z / options.temperature) for z in logits]
    order = sorted(range(len(p)), key=lambda word: p[word], reverse=True)
    if options.top_k:
        order = order[: options.top_k]
    together = sum(p[word] for word in order)
    kept: list[int] = []
    while sum(p[word] for word in kept) < options.top_p * together * (1 - 1e-9):
        kept.append(order[len(kept)])
    total = sum(p[word] for word in kept)
    return [p[word] / total if word in kept else 0.0 for word in range(len(p))]


@each_restriction
def test_draw_gives_each_word_its_share_of_the_unit_interval(options: DecodingOptions) -> None:
    torch.manual_seed(3)
    points, V = 9973, 17
    logits = 2 * torch.randn(2, 1, V)
    logits[:, :, PAD] = float("-inf")
    grid = (torch.arange(points) + 0.5) / points
    words = draw(logits.expand(2, points, V), grid.expand(2, points), options)
    for row in range(2):
        counts = words[row].bincount(minlength=V).tolist()
        for count, p in zip(counts, restricted(logits[row, 0].tolist(), options), strict=True):
            assert abs(count - points * p) <= 1.01  # an interval holds its length's number of points, ± 1
            assert count == 0 or p > 0


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-24])
def test_draw_at_the_ends_of_the_interval(uniform: float) -> None:
    """At 0 the likeliest word; next to 1, whatever the rounding, the least likely that may be drawn."""
    torch.manual_seed(5)
    logits = torch.randn(1, 1009, 31)
    logits[..., PAD] = float("-inf")
    options = DecodingOptions(temperature=1.0, top_k=7)
    words = draw(logits, torch.full((1, 1009), uniform), options)
    place = 0 if uniform == 0 else 6
    torch.testing.assert_close(words, logits.argsort(dim=2, descending=True)[..., place])


def test_draw_where_one_word_s_interval_ends_and_the_next_begins() -> None:
    """Four equally likely words: a number on the border belongs to the second, so that all get the same share."""
    logits = torch.zeros(1, 4, 4)
    words = draw(logits, torch.tensor([[0.0, 0.25, 0.5, 0.75]]), DecodingOptions(temperature=1.0))
    assert words.tolist() == [[0, 1, 2, 3]]


@each_kind
@each_restriction
def test_first_words_are_as_frequent_as_they_are_likely(kind: ModelOptions, options: DecodingOptions) -> None:
    model, samples, source = eloquent_model(kind), 503, SOURCES[0]
    drawn = search(model, *pad_sources([source]), replace(options, n_best=samples, max_length=1))[0]
    logits = next_log_probabilities(model, source, [])
    logits[PAD] = logits[BOS] = float("-inf")
    assert len(drawn) == samples
    for word, p in enumerate(restricted(logits, options)):
        tokens = [] if word == EOS else [word]
        count = sum(h.tokens == tokens for h in drawn)
        assert abs(count - samples * p) <= 5 * sqrt(samples * p * (1 - p)) + 1e-6


@each_kind
def test_a_seed_decides(kind: ModelOptions) -> None:
    model, options = eloquent_model(kind), DecodingOptions(temperature=2.0, n_best=3, max_length=7, seed=11)

    def sampled(seed: int) -> list[list[Hypothesis]]:
        return search(model, *pad_sources(SOURCES), replace(options, seed=seed))

    first = sampled(11)
    torch.manual_seed(0)  # of no concern to it
    assert sampled(11) == first
    assert sampled(13) != first


def test_sampling_leaves_the_global_generator_alone() -> None:
    model = eloquent_model(PAPER)
    before = torch.get_rng_state()
    search(model, *pad_sources(SOURCES), DecodingOptions(temperature=1.0, max_length=3))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", ["paper", "rotary", "gru-attention", "lstm-context"])
def test_batched_is_alone_wherever_it_stands(name: str) -> None:
    model, options = eloquent_model(VARIANTS[name]), DecodingOptions(temperature=1.5, n_best=3)
    together = search(model, *pad_sources(SOURCES), options)
    other_way_round = search(model, *pad_sources(SOURCES[::-1]), options)[::-1]
    for source, found, reversed_ in zip(SOURCES, together, other_way_round, strict=True):
        (alone,) = search(model, *pad_sources([source]), options)
        assert_same(found, alone)
        assert_same(found, reversed_)


@each_kind
@pytest.mark.parametrize(
    "sampling",
    [DecodingOptions(temperature=1e-6), DecodingOptions(temperature=5.0, top_k=1)],
    ids=["tiny temperature", "top_k = 1"],
)
def test_greedy_search_is_the_limit_of_sampling(kind: ModelOptions, sampling: DecodingOptions) -> None:
    model = eloquent_model(kind)
    greedy = search(model, *pad_sources(SOURCES), DecodingOptions(beam=1, max_length=11))
    for found, other in zip(
        search(model, *pad_sources(SOURCES), replace(sampling, max_length=11)), greedy, strict=True
    ):
        assert_same(found, other)


@each_kind
def test_samples_come_best_first_with_the_model_s_own_probability(kind: ModelOptions) -> None:
    model = eloquent_model(kind)
    options = DecodingOptions(temperature=2.0, top_k=11, n_best=7, max_length=5, length_penalty="paper", alpha=0.6)
    for source, found in zip(SOURCES, search(model, *pad_sources(SOURCES), options), strict=True):
        assert len(found) == 7
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert not {PAD, BOS, EOS} & {token for h in found for token in h.tokens}
        expected = [log_probability(model, source, h.tokens) / penalty(len(h.tokens) + 1, options) for h in found]
        assert_same(found, [Hypothesis(h.tokens, s) for h, s in zip(found, expected, strict=True)])


@each_kind
def test_samples_keep_to_the_constraints(kind: ModelOptions) -> None:
    model = eloquent_model(kind)
    options = DecodingOptions(temperature=1.0, n_best=5, min_length=4, max_length=5)
    prefixes = [[5, 4, 3], [], [16], [7, 7], [11, 13], [], [4, 5, 6, 7, 8, 9, 10]]  # the last beats max_length
    for prefix, found in zip(
        prefixes, search(model, *pad_sources(SOURCES), options, [Demand(ids) for ids in prefixes]), strict=True
    ):
        assert len(found) == 5
        assert all(h.tokens[: len(prefix)] == prefix for h in found)
        assert all(4 <= len(h.tokens) <= max(5, len(prefix)) for h in found)
