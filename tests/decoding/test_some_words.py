"""A search among some of the words finds what a search among all finds when the others have no probability."""

import random

import pytest
import torch

from clearhead.data.batching import pad_sources
from clearhead.data.tokenizer import SPECIALS
from clearhead.decoding import DecodingOptions, Demand, search, search_steps
from clearhead.decoding.some_words import SomeWords
from clearhead.decoding.words import TargetWords
from clearhead.engines.native import NativeEngine
from clearhead.model import ModelOptions
from tests.decoding.reference import Model, eloquent_model
from tests.samples import LSTM, PAPER, TARGET_WORDS

UNSAID = [7, 8, 13, 15]  # of which both models would say some
SAID = [word for word in range(TARGET_WORDS) if word not in UNSAID]
KINDS: dict[str, ModelOptions] = {"transformer": PAPER, "rnn": LSTM}
OPTIONS = {
    "greedy": DecodingOptions(beam=1, max_length=7),
    "beam": DecodingOptions(beam=3, n_best=2, max_length=7),
    "blocked": DecodingOptions(beam=3, max_length=7, block_ngrams=2),
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
each_search = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())


def some_sources() -> list[list[int]]:
    rng = random.Random(5)
    return [[rng.randrange(SPECIALS, TARGET_WORDS) for _ in range(rng.randint(1, 11))] for _ in range(7)]


def silenced(kind: ModelOptions) -> Model:
    model = eloquent_model(kind)
    model.output.bias.data[UNSAID] = -1e4
    return model


@each_kind
@each_search
def test_it_is_the_search_of_a_model_that_cannot_say_the_others(kind: ModelOptions, options: DecodingOptions) -> None:
    sources, demands = some_sources(), [Demand(), Demand(prefix=SAID[5:7]), *[Demand()] * 5]
    everything = NativeEngine(eloquent_model(kind)).translate(sources, options, demands)
    assert {word for some in everything for one in some for word in one.tokens} & set(UNSAID)
    found = NativeEngine(eloquent_model(kind), said=SAID).translate(sources, options, demands)
    expected = NativeEngine(silenced(kind)).translate(sources, options, demands)
    assert [[one.tokens for one in some] for some in found] == [[one.tokens for one in some] for some in expected]
    for some, others in zip(found, expected, strict=True):
        assert [one.score for one in some] == pytest.approx([one.score for one in others], abs=1e-4)
    assert found[1][0].tokens[:2] == SAID[5:7]


@each_kind
def test_word_by_word_too(kind: ModelOptions) -> None:
    options, demand = DecodingOptions(beam=1), Demand(max_length=7)
    engine = NativeEngine(eloquent_model(kind), said=SAID)
    for source in some_sources():
        (whole,) = engine.translate([source], options, [demand])
        assert list(engine.search_steps(source, options, demand)) == whole[0].tokens


@each_kind
def test_what_is_demanded_is_said(kind: ModelOptions) -> None:
    """A prefix or a phrase may need any word: then all are considered, and the other sentences do not notice."""
    sources, options = some_sources()[:2], DecodingOptions(beam=3, max_length=9)
    whole, engine = NativeEngine(eloquent_model(kind)), NativeEngine(eloquent_model(kind), said=SAID)
    for demand in (Demand(prefix=UNSAID[:1]), Demand(phrases=[[UNSAID[:2]]])):
        found = engine.translate(sources, options, [demand, Demand()])
        assert found[0] == whole.translate(sources[:1], options, [demand])[0]
        assert found[1] == engine.translate(sources[1:], options)[0]
        assert UNSAID[0] in found[0][0].tokens
    steps = NativeEngine(eloquent_model(kind), said=SAID).search_steps(sources[0], options, Demand(prefix=UNSAID[:1]))
    assert next(steps) == UNSAID[0]


@each_kind
def test_hidden_states_of_a_whole_target(kind: ModelOptions) -> None:
    """The protocol's other half, in the numbers of the words that are said."""
    model = eloquent_model(kind)
    said = SomeWords(model, SAID)
    src, src_mask = pad_sources(some_sources())
    numbers = torch.tensor([[1, 5, 7]] * 7)
    hidden = said(src, src_mask, numbers)
    assert torch.equal(hidden, model(src, src_mask, torch.tensor(SAID)[numbers]))
    torch.testing.assert_close(said.logits(hidden), model.logits(hidden)[..., SAID])


def test_a_search_that_leaves_nothing_out_is_the_search() -> None:
    model, (src, src_mask) = eloquent_model(PAPER), pad_sources(some_sources())
    said, options = SomeWords(model, list(range(TARGET_WORDS))), OPTIONS["beam"]
    found = [said.named(some) for some in search(said, src, src_mask, options)]
    assert found == search(model, src, src_mask, options)
    first, demand = src[:1], Demand(max_length=7)
    steps = list(search_steps(said, first, options, demand))
    assert steps == list(search_steps(model, first, options, demand))


@pytest.mark.parametrize("unsaid", [[], [4], [4, 5, 6], [7, 11, 12, 13, 16]])
def test_words_as_ranges_and_back(unsaid: list[int]) -> None:
    words = TargetWords.without(unsaid)
    expected = [word for word in range(17) if word not in unsaid]
    assert words.said(17) == (expected if unsaid else None)


def test_ranges_are_short() -> None:
    assert TargetWords.without([7, 11, 12, 13]).unsaid == "7 11-13"


@pytest.mark.parametrize("unsaid", ["7,8", "7-", "-7", " 7", "7  8", "x", "٧", "9" * 5000])
def test_other_than_ranges_is_refused(unsaid: str) -> None:
    with pytest.raises(ValueError, match="expected ids and ranges of ids"):
        TargetWords(unsaid)


@pytest.mark.parametrize("unsaid", ["3", "0-7", "9 7", "9-7", "7-9 8", "7 7", "7-9 9"])
def test_ids_that_cannot_be_are_refused(unsaid: str) -> None:
    with pytest.raises(ValueError, match="expected rising ids from 4 on"):
        TargetWords(unsaid)


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="unsaid ends with 17; expected ids of 17 words"):
        TargetWords("5-17").said(17)
