"""What a search may say: length limits, blocked n-grams and forced prefixes, against a slow reference."""

import math
from dataclasses import replace

import pytest

from clearhead.data.batching import pad_sources
from clearhead.data.tokenizer import EOS
from clearhead.decoding import DecodingOptions, Demand, Hypothesis, search
from clearhead.model import ModelOptions
from tests.decoding.reference import (
    SOURCES,
    Ids,
    Model,
    assert_same,
    eloquent_model,
    log_probability,
    penalty,
    repeats,
    slow_search,
)
from tests.samples import LSTM, PAPER

TWO_KINDS: dict[str, ModelOptions] = {"transformer": PAPER, "rnn": replace(LSTM, cell="gru")}
PREFIXES: list[Ids] = [[5, 4, 3], [], [7, 7, 7, 7, 7], [11, 13], [], [16], [6]]

each_kind = pytest.mark.parametrize("kind", TWO_KINDS.values(), ids=TWO_KINDS.keys())
each_width = pytest.mark.parametrize("beam", [1, 3])


def found_by(model: Model, options: DecodingOptions, prefixes: list[Ids] | None = None) -> list[list[Hypothesis]]:
    demands = [Demand(prefix) for prefix in prefixes] if prefixes is not None else None
    return search(model, *pad_sources(SOURCES), options, demands)


def assert_slow_search_agrees(model: Model, options: DecodingOptions, prefixes: list[Ids] | None = None) -> None:
    """For every second sentence; all are searched together."""
    found = found_by(model, options, prefixes)
    for i in range(0, len(SOURCES), 2):
        assert_same(found[i], slow_search(model, SOURCES[i], options, prefixes[i] if prefixes else None))


def lengths(found: list[list[Hypothesis]]) -> list[int]:
    return [len(h.tokens) for hypotheses in found for h in hypotheses]


@each_kind
@each_width
def test_the_slow_search_agrees(kind: ModelOptions, beam: int) -> None:
    assert_slow_search_agrees(eloquent_model(kind), DecodingOptions(beam=beam, n_best=beam, max_length=7))


@each_kind
def test_without_scores_greedy_search_says_the_same_and_a_beam_still_has_them(kind: ModelOptions) -> None:
    model, bare = eloquent_model(kind), [Demand(prefix, scored=False) for prefix in PREFIXES]
    for beam in (1, 3):
        options = DecodingOptions(beam=beam, max_length=7, block_ngrams=2)
        found = search(model, *pad_sources(SOURCES), options, bare)
        expected = found_by(model, options, PREFIXES)
        assert [[h.tokens for h in some] for some in found] == [[h.tokens for h in some] for some in expected]
        assert all(math.isnan(h.score) == (beam == 1) for some in found for h in some)
    bare[2] = replace(bare[2], scored=True)
    options = DecodingOptions(beam=1, max_length=7)
    assert search(model, *pad_sources(SOURCES), options, bare)[2] == found_by(model, options, PREFIXES)[2]


@each_kind
@each_width
def test_min_length(kind: ModelOptions, beam: int) -> None:
    """Of a model that wants to end soon."""
    model, options = eloquent_model(kind), DecodingOptions(beam=beam, n_best=beam, max_length=7)
    model.output.bias.data[EOS] += 5
    assert min(lengths(found_by(model, options))) < 4
    assert min(lengths(found_by(model, replace(options, min_length=4)))) >= 4
    assert_slow_search_agrees(model, replace(options, min_length=4))


@each_kind
@each_width
def test_max_length(kind: ModelOptions, beam: int) -> None:
    """Of a model that does not want to end."""
    model, options = eloquent_model(kind), DecodingOptions(beam=beam, n_best=beam, max_length=11)
    model.output.bias.data[EOS] -= 5
    assert max(lengths(found_by(model, options))) == 11
    assert max(lengths(found_by(model, replace(options, max_length=2)))) == 2
    assert set(lengths(found_by(model, replace(options, min_length=3, max_length=3)))) == {3}
    assert_slow_search_agrees(model, replace(options, max_length=2))
    limits = [2, 5, None, 3, 7, 2, None]
    found = search(model, *pad_sources(SOURCES), options, [Demand(max_length=limit) for limit in limits])
    for i, limit in enumerate(limits):
        assert_same(found[i], slow_search(model, SOURCES[i], replace(options, max_length=limit or 11), None))


@each_kind
@each_width
def test_by_default_a_target_is_at_most_50_longer_than_its_source(kind: ModelOptions, beam: int) -> None:
    model = eloquent_model(kind)
    model.output.bias.data[EOS] = -1000
    src, src_mask = pad_sources(SOURCES[:2])
    found = search(model, src, src_mask, DecodingOptions(beam=beam))
    assert lengths(found) == [length + 50 for length in src_mask.sum(dim=1).tolist()]


@each_width
def test_min_length_beats_the_default_limit(beam: int) -> None:
    model = eloquent_model(PAPER)
    model.output.bias.data[EOS] = 1000
    options = DecodingOptions(beam=beam, min_length=53)
    (found,) = search(model, *pad_sources([[]]), options)
    assert lengths([found]) == [53]
    if beam == 1:
        assert_same(found, slow_search(model, [], options))


@each_width
@pytest.mark.parametrize("n", [1, 2, 3])
def test_blocked_ngrams(beam: int, n: int) -> None:
    model, options = eloquent_model(PAPER, seed=3), DecodingOptions(beam=beam, min_length=7, max_length=11)
    assert any(repeats(h.tokens, n) for (h,) in found_by(model, options))
    blocked = replace(options, block_ngrams=n)
    assert not any(repeats(h.tokens, n) for (h,) in found_by(model, blocked))
    assert_slow_search_agrees(model, blocked)


@each_width
def test_a_sentence_ends_when_every_word_is_blocked(beam: int) -> None:
    """Of seven ids four are words; min_length would like eleven of them, all different."""
    model = eloquent_model(replace(PAPER, target_vocabulary=7))
    options = DecodingOptions(beam=beam, n_best=beam, block_ngrams=1, min_length=11, max_length=13)
    for found in found_by(model, options):
        assert len(found) == beam
        assert all(sorted(h.tokens) == [3, 4, 5, 6] for h in found)


@each_width
def test_an_end_because_every_word_is_blocked_has_its_own_probability(beam: int) -> None:
    model = eloquent_model(replace(PAPER, target_vocabulary=7))
    assert_slow_search_agrees(model, DecodingOptions(beam=beam, block_ngrams=1, min_length=11, max_length=13))


@each_kind
@each_width
def test_forced_prefixes(kind: ModelOptions, beam: int) -> None:
    model, options = eloquent_model(kind), DecodingOptions(beam=beam, n_best=beam, max_length=7)
    free = found_by(model, options)
    found = found_by(model, options, PREFIXES)
    for source, prefix, forced, unforced in zip(SOURCES, PREFIXES, found, free, strict=True):
        assert all(h.tokens[: len(prefix)] == prefix for h in forced)
        for h in forced:  # the prefix counts, as if the model had chosen it
            expected = log_probability(model, source, h.tokens) / penalty(len(h.tokens) + 1, options)
            assert h.score == pytest.approx(expected, rel=1e-4)
        if not prefix:
            assert_same(forced, unforced)
    assert_slow_search_agrees(model, options, PREFIXES)


@each_width
def test_a_prefix_beats_the_limits_and_the_blocks(beam: int) -> None:
    """7 7 7 7 7 repeats itself and is longer than three tokens; what follows a prefix repeats nothing."""
    model = eloquent_model(PAPER)
    options = DecodingOptions(beam=beam, n_best=beam, max_length=3, block_ngrams=2)
    found = found_by(model, options, PREFIXES)
    assert [h.tokens for h in found[2]] == [PREFIXES[2]]
    assert max(lengths([*found[:2], *found[3:]])) == 3
    assert_slow_search_agrees(model, options, PREFIXES)
    assert_slow_search_agrees(model, replace(options, max_length=9), PREFIXES)


def test_a_prefix_is_kept_to_when_others_leave_the_batch() -> None:
    """The longest prefix is the last sentence's; all the others are done before it ends."""
    model = eloquent_model(PAPER)
    model.output.bias.data[EOS] += 20
    prefixes: list[Ids] = [[], [], [4], [], [], [], [7, 5, 7, 5, 7, 5, 7]]
    assert_slow_search_agrees(model, DecodingOptions(beam=1), prefixes)
    assert_slow_search_agrees(model, DecodingOptions(beam=3), prefixes)


@pytest.mark.parametrize(
    "options", [DecodingOptions(beam=1), DecodingOptions(beam=3), DecodingOptions(temperature=1.0)]
)
def test_each_sentence_needs_its_prefix(options: DecodingOptions) -> None:
    with pytest.raises(ValueError, match="there are 3 demands for 7 sentences"):
        found_by(eloquent_model(PAPER), options, [[5], [], [6]])
