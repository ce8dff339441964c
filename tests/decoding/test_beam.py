"""Beam search against exhaustive search, greedy search, itself without a batch, and a slow reference."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from clearhead.data.batching import make_batch, pad_sources
from clearhead.data.tokenizer import BOS, EOS, PAD
from clearhead.decoding import DecodingOptions, Hypothesis, search
from clearhead.decoding.beam import beam_search, largest
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
    slow_search,
)
from tests.samples import LSTM, PAPER, VARIANTS

TWO_KINDS: dict[str, ModelOptions] = {"transformer": PAPER, "rnn": replace(LSTM, cell="gru")}
PENALTIES = {
    "mean": DecodingOptions(length_penalty="mean", alpha=1.0),
    "paper": DecodingOptions(length_penalty="paper", alpha=0.6),
    "sum": DecodingOptions(alpha=0.0),
}

each_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
each_kind = pytest.mark.parametrize("kind", TWO_KINDS.values(), ids=TWO_KINDS.keys())
each_penalty = pytest.mark.parametrize("normalised", PENALTIES.values(), ids=PENALTIES.keys())


def count_rows(model: Model, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list to which each step of decoding will add how many rows it was asked for."""
    rows = []
    decode = model.decode

    def counted(tgt: Tensor, state: object) -> Tensor:
        rows.append(len(tgt))
        return decode(tgt, state)  # type: ignore[arg-type]

    monkeypatch.setattr(model, "decode", counted)
    return rows


@pytest.mark.slow
@each_kind
@each_penalty
def test_a_huge_beam_is_exhaustive_search(kind: ModelOptions, normalised: DecodingOptions) -> None:
    V, longest = 7, 3
    model = eloquent_model(replace(kind, target_vocabulary=V))
    words = [word for word in range(V) if word not in (PAD, BOS, EOS)]
    targets = [list(target) for length in range(longest + 1) for target in product(words, repeat=length)]
    options = replace(normalised, beam=len(targets) + 4, n_best=3, max_length=longest)
    sources = SOURCES[:3]
    for source, found in zip(sources, search(model, *pad_sources(sources), options), strict=True):
        log_p = [sum(tokens) for tokens in score(model, make_batch([(source, target) for target in targets]))]
        everything = [
            Hypothesis(target, total / penalty(len(target) + 1, options))
            for target, total in zip(targets, log_p, strict=True)
        ]
        assert_same(found, sorted(everything, key=lambda h: h.score, reverse=True)[:3])


@each_variant
def test_a_beam_of_one_is_greedy_search(variant: ModelOptions) -> None:
    model = eloquent_model(variant)
    options = DecodingOptions(beam=1, max_length=7)
    greedy = search(model, *pad_sources(SOURCES), options)
    for ours, other in zip(beam_search(model, *pad_sources(SOURCES), options), greedy, strict=True):
        assert len(ours) == 1
        assert_same(ours, other)


@each_variant
def test_batched_is_alone(variant: ModelOptions) -> None:
    """The best hypothesis: of a model that is blind to positions (no-skip), the second and the third may be ties."""
    model = eloquent_model(variant)
    options = DecodingOptions(beam=3, max_length=7)
    together = search(model, *pad_sources(SOURCES), options)
    for source, found in list(zip(SOURCES, together, strict=True))[::3]:
        (alone,) = search(model, *pad_sources([source]), options)
        assert_same(found, alone)


@each_kind
@each_penalty
def test_scores_are_normalised_log_probabilities(kind: ModelOptions, normalised: DecodingOptions) -> None:
    model = eloquent_model(kind)
    options = replace(normalised, beam=5, n_best=5, max_length=7)
    for source, found in zip(SOURCES, search(model, *pad_sources(SOURCES), options), strict=True):
        assert len(found) == 5
        expected = [log_probability(model, source, h.tokens) / penalty(len(h.tokens) + 1, options) for h in found]
        assert_same(found, [Hypothesis(h.tokens, s) for h, s in zip(found, expected, strict=True)])


@each_kind
def test_hypotheses_are_best_first_all_different_and_only_words(kind: ModelOptions) -> None:
    model = eloquent_model(kind)
    options = DecodingOptions(beam=7, n_best=7, max_length=5)
    for found in search(model, *pad_sources(SOURCES), options):
        assert len({tuple(h.tokens) for h in found}) == 7
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert not {PAD, BOS, EOS} & {token for h in found for token in h.tokens}


@pytest.mark.slow
@each_kind
@each_penalty
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_stopping_early_loses_nothing(kind: ModelOptions, normalised: DecodingOptions, seed: int) -> None:
    model = eloquent_model(kind, seed)
    for n_best, source in enumerate(SOURCES[:3], start=1):
        options = replace(normalised, beam=3, n_best=n_best, max_length=7)
        (found,) = beam_search(model, *pad_sources([source]), options)
        assert_same(found, slow_search(model, source, options))


@pytest.mark.slow
@each_kind
def test_a_long_search_is_the_slow_one(kind: ModelOptions) -> None:
    """Long enough for the cache to grow and to drop what no hypothesis sees any more, several times."""
    model = eloquent_model(kind, seed=5)
    model.output.bias.data[EOS] -= 3
    options = DecodingOptions(beam=5, n_best=5, min_length=13, max_length=17, alpha=0.0)
    (found,) = search(model, *pad_sources(SOURCES[:1]), options)
    assert_same(found, slow_search(model, SOURCES[0], options))


@each_kind
def test_a_search_stops_when_nothing_better_can_come(kind: ModelOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """With EOS almost certain at once, the other hypotheses are already behind; unless more are asked for."""
    model = eloquent_model(kind)
    model.output.bias.data[EOS] += 20
    rows = count_rows(model, monkeypatch)
    search(model, *pad_sources(SOURCES), DecodingOptions(beam=3, max_length=13, alpha=0.0))
    assert rows == [len(SOURCES)]  # the first step is the same for all of a sentence's hypotheses
    search(model, *pad_sources(SOURCES), DecodingOptions(beam=3, n_best=3, max_length=13, alpha=0.0))
    assert len(rows) > 2


@each_kind
def test_nothing_changes_for_those_who_stay_or_leave(kind: ModelOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence that is done leaves a batch of two at once, but waits in a batch of seven."""
    options = DecodingOptions(beam=3, n_best=2, max_length=11, alpha=0.0)

    def searched(sources: list[Ids]) -> tuple[list[list[Hypothesis]], list[int]]:
        rows.clear()
        return search(model, *pad_sources(sources), options), list(rows)

    for seed in range(1, 12):  # until there is a sentence that takes longer than another
        model = eloquent_model(kind, seed)
        rows = count_rows(model, monkeypatch)
        source_of = {len(searched([source])[1]): source for source in SOURCES}
        if len(source_of) > 1:
            break
    steps, more_steps = min(source_of), max(source_of)
    short, long = source_of[steps], source_of[more_steps]
    (short_alone,), (long_alone,) = searched([short])[0], searched([long])[0]

    found, rows_left = searched([short, long])
    assert rows_left == [2, *[6] * (steps - 1), *[3] * (more_steps - steps)]
    assert_same(found[0], short_alone)
    assert_same(found[1], long_alone)

    found, rows_stayed = searched([short, *[long] * 6])
    assert rows_stayed == [7, *[21] * (more_steps - 1)]
    assert_same(found[0], short_alone)
    for other in found[1:]:
        assert_same(other, long_alone)


def test_a_beam_wider_than_the_vocabulary() -> None:
    model = eloquent_model(replace(PAPER, target_vocabulary=7))
    options = DecodingOptions(beam=11, n_best=11, max_length=5)
    (found,) = search(model, *pad_sources(SOURCES[:1]), options)
    assert_same(found, slow_search(model, SOURCES[0], options))


def test_search_leaves_the_model_as_it_was() -> None:
    model = eloquent_model(PAPER)
    before = {name: parameter.clone() for name, parameter in model.state_dict().items()}
    first = search(model, *pad_sources(SOURCES), DecodingOptions(beam=3, max_length=7))
    assert search(model, *pad_sources(SOURCES), DecodingOptions(beam=3, max_length=7)) == first
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


@pytest.mark.parametrize("words", [5, 64, 1531, 1536, 8009])
def test_the_largest_are_what_topk_finds(words: int) -> None:
    logits = torch.randn(3, 2, words)
    logits[0, 0] = float("-inf")
    logits[0, 0, words - 2] = 1.0
    for k in (1, 2, 5):
        expected, (top, places) = logits.topk(k, dim=2), largest(logits, k)
        assert torch.equal(top, expected.values)
        assert torch.equal(logits.gather(2, places), top)
        assert all(len(set(row)) == k for row in places.view(-1, k).tolist())
