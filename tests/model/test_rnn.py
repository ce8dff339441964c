"""What only the RNN has: one fixed context or additive attention, and states that begin with the source.

B sentences, S source tokens, D width, W hypotheses per sentence.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from clearhead.model.rnn import RNN, AdditiveAttention, RNNState
from tests.samples import LSTM, make_model, random_ids, random_source

CELLS = ["tanh", "gru", "lstm"]


def make_rnn(cell: str, attention: bool) -> RNN:
    model = make_model(replace(LSTM, cell=cell, attention=attention))
    assert isinstance(model, RNN)
    return model


def contexts(model: RNN, src: Tensor, src_mask: Tensor, tgt: Tensor) -> Tensor:
    """The second half of what `join` reads at each step, (B, T, 2D)."""
    seen: list[Tensor] = []
    hook = model.join.register_forward_hook(lambda _, args, __: seen.append(args[0][:, LSTM.width :]))
    model(src, src_mask, tgt)
    hook.remove()
    return torch.stack(seen, dim=1)


@pytest.mark.parametrize("cell", CELLS)
def test_without_attention_there_is_nothing_of_it(cell: str) -> None:
    with_it, without = make_rnn(cell, attention=True), make_rnn(cell, attention=False)
    extra = {name for name, _ in with_it.named_parameters()} - {name for name, _ in without.named_parameters()}
    assert extra == {"attention.query.weight", "attention.key.weight", "attention.v"}
    assert without.attention is None
    assert not [module for module in without.modules() if isinstance(module, AdditiveAttention)]


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("attention", [True, False])
def test_the_context_is_fixed_only_without_attention(cell: str, attention: bool) -> None:
    context = contexts(make_rnn(cell, attention), *random_source(3, 5), random_ids(3, 7))
    assert context.shape == (3, 7, 2 * LSTM.width)
    assert torch.equal(context, context[:, :1].expand_as(context)) == (not attention)


@pytest.mark.parametrize("cell", CELLS)
def test_the_fixed_context_is_the_encoders_last_states(cell: str) -> None:
    """Forward after the last token, backward after the first: what padding hides is read by neither."""
    model = make_rnn(cell, attention=False)
    src, src_mask = random_source(3, 5)
    context = contexts(model, src, src_mask, random_ids(3, 2))[:, 0]
    for b, length in enumerate(src_mask.sum(dim=1).tolist()):
        assert model.encoder is not None
        outputs, _ = model.encoder(model.source_embedding(src[b, :length])[None])
        forward, backward = outputs[0].split(LSTM.width, dim=-1)
        assert_close(context[b], torch.cat([forward[-1], backward[0]]))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("attention", [True, False])
@torch.no_grad()
def test_decoder_is_its_equations(cell: str, attention: bool) -> None:
    """Written out for one sentence: s_0 = tanh(W_s h_1) and an LSTM's memory empty; context, cells, deep output."""
    model, D = make_rnn(cell, attention), LSTM.width
    src, src_mask = random_source(1, 5)
    tgt = random_ids(1, 7)
    assert model.encoder is not None
    memory, last = model.encoder(model.source_embedding(src[0]))  # (S, 2D); and the last states (layers·2, D)
    last = last[0] if cell == "lstm" else last
    cells: list[Any] = [torch.tanh(start(last[2 * layer + 1])) for layer, start in enumerate(model.start)]
    cells = [(h, torch.zeros(D)) for h in cells] if cell == "lstm" else cells

    def hidden(state: Any) -> Tensor:
        return state[0] if cell == "lstm" else state

    said = []
    for word in tgt[0]:
        context = torch.cat([memory[-1, :D], memory[0, D:]])
        if model.attention is not None:
            query, key = model.attention.query.weight @ hidden(cells[-1]), memory @ model.attention.key.weight.T
            context = (torch.tanh(query + key) @ model.attention.v).softmax(dim=0) @ memory
        below = torch.cat([model.target_embedding(word), context])
        for layer, step in enumerate(model.decoder):
            cells[layer] = step(below, cells[layer])
            below = hidden(cells[layer])
        said.append(torch.tanh(model.join(torch.cat([below, context]))))
    assert_close(model(src, src_mask, tgt)[0], torch.stack(said))


def test_additive_attention_is_bahdanaus_formula() -> None:
    B, W, S, D = 2, 3, 5, 7
    attention = AdditiveAttention(D)
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    hidden, memory, (_, mask) = torch.randn(B, W, D), torch.randn(B, S, 2 * D), random_source(B, S)
    context = attention(hidden, attention.keys(memory), memory, mask)
    for b in range(B):
        for w in range(W):
            places = [s for s in range(S) if mask[b, s]]
            scores = [
                attention.v @ torch.tanh(attention.query.weight @ hidden[b, w] + attention.key.weight @ memory[b, s])
                for s in places
            ]
            weights = torch.stack(scores).softmax(dim=0)
            expected = sum(weight * memory[b, s] for weight, s in zip(weights, places, strict=True))
            assert_close(context[b, w], expected)


def test_attention_weights_sum_to_one_and_leave_out_padding() -> None:
    model = make_rnn("gru", attention=True)
    seen: list[tuple[Any, ...]] = []
    attention = model.attention
    assert attention is not None
    attention.register_forward_hook(lambda _, args, output: seen.append((*args, output)))
    src, src_mask = random_source(3, 5)
    state = model.encode(src, src_mask).repeat(2)
    for _ in range(7):
        model.decode(random_ids(6, 1), state)
    assert len(seen) == 7
    for hidden, keys, values, mask, context in seen:
        weights = attention.weights(hidden, keys, mask)
        assert weights.shape == (3, 2, 5)
        assert_close(weights.sum(dim=-1), torch.ones(3, 2))
        assert torch.equal(weights > 0, src_mask[:, None].expand(3, 2, 5))
        assert_close(weights @ values, context)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("attention", [True, False])
def test_selecting_leaves_the_old_state_as_it_was(cell: str, attention: bool) -> None:
    """Each call makes new cells, so a state taken before a step can be continued twice."""
    model = make_rnn(cell, attention)
    state: RNNState = model.encode(*random_source(2, 5))
    rows, tgt = torch.arange(2), random_ids(2, 3)
    once, again = state.select(rows), state.select(rows)
    assert_close(model.decode(tgt, once), model.decode(tgt, again))


def test_one_layer_and_no_dropout_between_layers() -> None:
    """nn.GRU warns of dropout with one layer, and warnings are errors here."""
    model = RNN(replace(LSTM, cell="gru", layers=1, dropout=0.5))
    assert model(*random_source(2, 5), random_ids(2, 3)).shape == (2, 3, LSTM.width)
