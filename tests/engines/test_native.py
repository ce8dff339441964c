"""The native engine: batches are sorted and filled as planned, and nobody sees it in the result."""

import random

import pytest
import torch

from clearhead.decoding import DecodingOptions, Demand
from clearhead.engines import Engine
from clearhead.engines import native as module
from clearhead.engines.batches import batches_by_length
from clearhead.engines.native import NativeEngine
from tests.samples import LSTM, PAPER, TARGET_WORDS, make_model


def some_sources(n: int, longest: int = 11) -> list[list[int]]:
    rng = random.Random(3)
    return [[rng.randrange(4, TARGET_WORDS) for _ in range(rng.randint(0, longest))] for _ in range(n)]


@pytest.fixture(params=["transformer", "rnn"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return NativeEngine(make_model(PAPER if request.param == "transformer" else LSTM))


OPTIONS = [
    DecodingOptions(beam=1, max_length=7),
    DecodingOptions(beam=3, max_length=7),
    DecodingOptions(beam=3, n_best=3, max_length=5),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_batched_equals_alone_and_order_is_restored(
    options: DecodingOptions, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = some_sources(13)
    alone = [engine.translate([source], options)[0] for source in sources]
    for budget in (1, 41, 4096):
        monkeypatch.setattr(module, "TOKENS_PER_BATCH", budget)
        together = engine.translate(sources, options)
        assert [[h.tokens for h in found] for found in together] == [[h.tokens for h in found] for found in alone]
        for ours, theirs in zip(together, alone, strict=True):
            assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-5)
            assert len(ours) == options.n_best


def test_results_come_as_they_are_done(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOKENS_PER_BATCH", 41)
    sources = some_sources(13)
    parts = list(engine.translate_batches(sources, OPTIONS[0]))
    assert len(parts) > 2
    assert sorted(place for places, _ in parts for place in places) == list(range(13))
    whole = engine.translate(sources, OPTIONS[0])
    assert all(whole[place] == found for places, some in parts for place, found in zip(places, some, strict=True))


@pytest.mark.parametrize("limit", [1, 7])
def test_steps_are_greedy_search_word_by_word(engine: Engine, limit: int) -> None:
    sources = some_sources(13)
    whole = engine.translate(sources, DecodingOptions(beam=1, max_length=limit))
    assert [list(engine.steps(source, limit)) for source in sources] == [found[0].tokens for found in whole]


def test_prefixes_go_with_their_sources(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOKENS_PER_BATCH", 41)
    sources = some_sources(7)
    prefixes = [[5 + place, 4] for place in range(7)]
    found = engine.translate(sources, OPTIONS[1], [Demand(prefix) for prefix in prefixes])
    assert [hypotheses[0].tokens[:2] for hypotheses in found] == prefixes


def test_nothing_is_nothing(engine: Engine) -> None:
    assert engine.translate([], OPTIONS[0]) == []


@pytest.mark.parametrize("beam", [1, 5])
def test_batches_fit_and_the_longest_come_first(beam: int) -> None:
    lengths = [len(source) for source in some_sources(997, longest=101)] + [5000]
    batches = list(batches_by_length(lengths, module.TOKENS_PER_BATCH // beam))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    flat = [lengths[place] for batch in batches for place in batch]
    assert flat == sorted(flat, reverse=True)
    costs = [len(batch) * (lengths[batch[0]] + 1) * beam for batch in batches]
    assert all(cost <= module.TOKENS_PER_BATCH for cost, batch in zip(costs, batches, strict=True) if len(batch) > 1)
    assert batches[0] == [len(lengths) - 1]
    assert len(batches) <= 3 + 2 * sum(costs[1:]) / module.TOKENS_PER_BATCH


def test_enough_sentences_take_no_far_shorter_ones() -> None:
    lengths = [9] * 3 + [8] * 2 + [5] * 4 + [1]
    assert [len(batch) for batch in batches_by_length(lengths, 1000)] == [10]
    assert [len(batch) for batch in batches_by_length(lengths, 1000, enough=4)] == [5, 4, 1]
    assert [len(batch) for batch in batches_by_length(lengths, 1000, enough=6)] == [6, 4]
    assert [len(batch) for batch in batches_by_length([9, 1, 1], 20, enough=1)] == [1, 2]


def test_gradients_are_not_kept(engine: NativeEngine) -> None:
    engine.translate(some_sources(3), OPTIONS[0])
    assert torch.is_grad_enabled()
    assert all(parameter.grad is None for parameter in engine.model.parameters())  # type: ignore[attr-defined]
