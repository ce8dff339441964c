"""Two ways to the same numbers, for every variant of both models: cached or not, batched or alone, padded or not.

B sentences, S source tokens, T target tokens, W hypotheses per sentence.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.model import ModelOptions, Seq2Seq, TransformerOptions, transformer
from clearhead.model.rnn import RNN
from clearhead.model.transformer import DecoderState, Transformer
from tests.samples import PAPER, TARGET_WORDS, VARIANTS, has_encoder, make_model, random_ids, random_source


def assert_same(actual: Tensor, expected: Tensor) -> None:
    """Up to rounding; where there is no norm the numbers grow, and their rounding with them."""
    size = expected.abs().max().item()
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12 * max(1.0, size))


pytestmark = pytest.mark.usefixtures("in_float64", "no_gradients")


@pytest.fixture
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(params=VARIANTS)
def model(request: pytest.FixtureRequest, in_float64: None) -> Seq2Seq[Any]:  # noqa: ARG001, it comes first
    model = cached_model(request.param)
    torch.manual_seed(11)
    return model


@cache
def cached_model(name: str) -> Transformer | RNN:
    """No test of this file changes it: each variant is made once."""
    return make_model(sensitive(VARIANTS[name]))


def sensitive(options: ModelOptions) -> ModelOptions:
    """A learned table for the longest history here; and without skips one encoder block, because after three
    all positions are the same vector (Dong et al. 2021) and what was said so far changes nothing."""
    if not isinstance(options, TransformerOptions):
        return options
    return replace(options, max_positions=97, encoder_blocks=options.encoder_blocks if options.skip else 1)


def test_in_pieces_equals_all_at_once(model: Seq2Seq[Any]) -> None:
    src, src_mask = random_source(3, 5)
    tgt = random_ids(3, 11)
    at_once = model(src, src_mask, tgt)
    for sizes in ([1] * 11, [3, 1, 2, 5], [1, 7, 3]):
        state = model.encode(src, src_mask)
        in_pieces = torch.cat([model.decode(piece, state) for piece in tgt.split(sizes, dim=1)], dim=1)
        assert_same(in_pieces, at_once)


def test_source_in_parts_equals_all_at_once(model: Seq2Seq[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "READ_AT_ONCE", 11)
    src, src_mask = random_source(7, 5)
    tgt = random_ids(7, 3)
    assert_same(model.decode(tgt, model.encode(src, src_mask)), model(src, src_mask, tgt))


def test_parts_are_no_longer_than_their_longest_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer, "READ_AT_ONCE", 11)
    model, read = make_model(PAPER), []
    assert isinstance(model.source_embedding, nn.Module)
    model.source_embedding.register_forward_hook(lambda _, seen, __: read.append(tuple(seen[0].shape)))
    src, src_mask = random_source(7, 5)  # of 5, 4, 3, 2, 1, 5 and 4 words
    model.encode(src, src_mask)
    assert read == [(3, 5), (3, 5), (1, 4)]
    read.clear()
    model.encode(src[1:5], src_mask[1:5])
    assert read == [(4, 4)]


def test_batched_equals_alone(model: Seq2Seq[Any]) -> None:
    src, src_mask = random_source(5, 7)
    tgt = random_ids(5, 3)
    batched = model(src, src_mask, tgt)
    for b, length in enumerate(src_mask.sum(dim=1).tolist()):
        one = slice(b, b + 1)
        alone = model(src[one, :length], torch.ones(1, length, dtype=torch.bool), tgt[one])
        assert_same(batched[one], alone)


def test_padded_source_equals_unpadded(model: Seq2Seq[Any]) -> None:
    src, src_mask = random_source(3, 5)
    tgt = random_ids(3, 7)
    padded, padded_mask = torch.cat([src, random_ids(3, 13)], dim=1), torch.zeros(3, 18, dtype=torch.bool)
    padded_mask[:, :5] = src_mask
    assert_same(model(padded, padded_mask, tgt), model(src, src_mask, tgt))


def test_what_stands_in_hidden_places_does_not_matter(model: Seq2Seq[Any]) -> None:
    src, src_mask = random_source(3, 5)
    tgt = random_ids(3, 7)
    others = torch.where(src_mask, src, other_words(src))
    assert_same(model(others, src_mask, tgt), model(src, src_mask, tgt))
    seen_too = torch.where(src_mask, other_words(src), src)
    is_same = torch.allclose(model(seen_too, src_mask, tgt), model(src, src_mask, tgt), rtol=0, atol=1e-3)
    assert is_same == (not has_encoder(model))  # a language model is told nothing by its source


def test_trailing_target_tokens_change_nothing(model: Seq2Seq[Any]) -> None:
    src, src_mask = random_source(3, 5)
    tgt, more = random_ids(3, 7), random_ids(3, 4)
    assert_same(model(src, src_mask, torch.cat([tgt, more], dim=1))[:, :7], model(src, src_mask, tgt))


def test_a_token_changes_the_logits_from_its_place_on(model: Seq2Seq[Any]) -> None:
    src, src_mask = random_source(3, 5)
    tgt, place = random_ids(3, 7), 4
    changed = tgt.clone()
    changed[:, place] = other_words(tgt[:, place])
    before, after = (model.logits(model(src, src_mask, ids)) for ids in (tgt, changed))
    assert torch.equal(after[:, :place], before[:, :place])
    assert ((after - before)[:, place:].abs().amax(dim=-1) > 1e-9).all()


def test_hypotheses_equal_their_history(model: Seq2Seq[Any]) -> None:
    """What search does: every step each row goes on from a random row of its sentence."""
    search = Search(model, *random_source(2, 5), hypotheses=3)
    search.go_on(steps=31)
    search.check()


def test_kept_sentences_equal_their_history(model: Seq2Seq[Any]) -> None:
    search = Search(model, *random_source(5, 7), hypotheses=3)
    for sentences in ([4, 0, 3, 2], [3, 0], [1]):
        search.keep(torch.tensor(sentences))
        search.go_on(steps=5)
    search.check()


@pytest.mark.parametrize("hypotheses", [1, 7])
@pytest.mark.parametrize("name", ["paper", "lstm-attention"])
def test_long_searches_equal_their_history(name: str, hypotheses: int) -> None:
    """Long enough for the cache to grow and to drop what nobody sees any more, several times."""
    search = Search(make_model(VARIANTS[name]), *random_source(5, 7), hypotheses)
    for sentences in ([4, 0, 1, 3, 2], [3, 0, 4], [1, 2], [1]):
        search.go_on(steps=19)
        search.keep(torch.tensor(sentences))
        search.check()


def test_hypotheses_share_the_source(model: Seq2Seq[Any]) -> None:
    """Rows b·n + w of a repeated state are the sentence b."""
    src, src_mask = random_source(3, 5)
    tgt = random_ids(3, 7)
    tripled = model.decode(tgt.repeat_interleave(3, dim=0), model.encode(src, src_mask).repeat(3))
    assert_same(tripled, model(src, src_mask, tgt).repeat_interleave(3, dim=0))


@pytest.mark.parametrize("tokens", [1, 3])
def test_hypotheses_that_begin_alike_may_part_later(model: Seq2Seq[Any], tokens: int) -> None:
    """Repeated after their first tokens they go on as if they had been repeated before."""
    src, src_mask = random_source(3, 5)
    beginning, end = random_ids(3, tokens), random_ids(6, 2)
    early, late = model.encode(src, src_mask).repeat(2), model.encode(src, src_mask)
    model.decode(beginning.repeat_interleave(2, dim=0), early)
    model.decode(beginning, late)
    assert_same(model.decode(end, late.repeat(2)), model.decode(end, early))


def test_repeating_twice_is_refused() -> None:
    model = make_model(PAPER)
    assert isinstance(model, Transformer)
    state: DecoderState = model.encode(*random_source(2, 5)).repeat(3)
    with pytest.raises(ValueError, match="3 hypotheses per sentence already; repeat comes once"):
        state.repeat(2)


@pytest.mark.parametrize(("normalizer", "same"), [("layer", True), ("rms", True), ("batch", False)])
def test_only_batch_norm_looks_at_the_neighbours_in_training(normalizer: str, same: bool) -> None:
    model = make_model(replace(PAPER, normalizer=normalizer, dropout=0.0)).train()
    src, src_mask = random_source(3, 5)
    tgt = random_ids(3, 7)
    batched = model(src, src_mask, tgt)
    first = model(src[:1], src_mask[:1], tgt[:1])  # the one sentence of the batch that has no padding
    assert torch.allclose(batched[:1], first, rtol=0, atol=1e-12) == same
    padded, padded_mask = torch.cat([src, random_ids(3, 2)], dim=1), torch.cat([src_mask, src_mask[:, :2] & False], 1)
    assert torch.allclose(model(padded, padded_mask, tgt), batched, rtol=0, atol=1e-12) == same
    assert (
        torch.allclose(model(src, src_mask, torch.cat([tgt, tgt[:, :2]], 1))[:, :7], batched, rtol=0, atol=1e-12)
        == same
    )
    model.eval()
    assert_same(model(padded, padded_mask, tgt), model(src, src_mask, tgt))


class Search:
    """A search without sense: random tokens, random parents; and the history of each hypothesis beside it."""

    def __init__(self, model: Seq2Seq[Any], src: Tensor, src_mask: Tensor, hypotheses: int) -> None:
        self.model, self.W = model, hypotheses
        self.src, self.src_mask = src, src_mask
        self.state = model.encode(src, src_mask).repeat(hypotheses)
        self.tokens = torch.empty(len(src) * hypotheses, 0, dtype=torch.long)
        self.hidden: list[Tensor] = []  # what decode said, for each step (B·W, T, D)

    def go_on(self, steps: int) -> None:
        """Mostly one token at a time, sometimes two."""
        rows = len(self.tokens)
        for step in range(steps):
            new = random_ids(rows, 2 if step % 7 == 0 else 1)
            self.tokens = torch.cat([self.tokens, new], dim=1)
            self.hidden.append(self.model.decode(new, self.state))
            parents = torch.arange(rows) // self.W * self.W + torch.randint(self.W, (rows,))
            self._take(parents)
            self.state = self.state.select(parents)

    def keep(self, sentences: Tensor) -> None:
        self._take((sentences[:, None] * self.W + torch.arange(self.W)).flatten())
        self.src, self.src_mask = self.src[sentences], self.src_mask[sentences]
        self.state = self.state.keep(sentences)

    def check(self) -> None:
        src, src_mask = (x.repeat_interleave(self.W, dim=0) for x in (self.src, self.src_mask))
        assert_same(torch.cat(self.hidden, dim=1), self.model(src, src_mask, self.tokens))

    def _take(self, rows: Tensor) -> None:
        self.tokens, self.hidden = self.tokens[rows], [hidden[rows] for hidden in self.hidden]


def other_words(ids: Tensor) -> Tensor:
    """For every id a different one, still inside both vocabularies."""
    return (ids + 1) % TARGET_WORDS
