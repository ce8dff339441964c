"""The parts of a block against their formulas, where dropout acts, and how weights begin."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from clearhead.model import TransformerOptions
from clearhead.model.attention import MultiHeadAttention
from clearhead.model.linear import Dropout
from clearhead.model.transformer import FeedForward, Residual, Transformer
from tests.samples import PAPER, random_ids, random_source

D = PAPER.width

# With f the sub-layer, LN the norm and d the dropout; x is the input.
Function = Callable[[Tensor], Tensor]
RESIDUALS: dict[str, Callable[[Tensor, Function, Function, Function], Tensor]] = {
    "post": lambda x, f, LN, d: LN(x + d(f(x))),
    "pre": lambda x, f, LN, d: x + d(f(LN(x))),
    "branch": lambda x, f, LN, d: x + d(LN(f(x))),
    "none": lambda x, f, LN, d: x + d(f(x)),  # noqa: ARG005
    "post without skip": lambda x, f, LN, d: LN(d(f(x))),
    "pre without skip": lambda x, f, LN, d: d(f(LN(x))),
    "branch without skip": lambda x, f, LN, d: d(LN(f(x))),
    "none without skip": lambda x, f, LN, d: d(f(x)),  # noqa: ARG005
}


class Half(nn.Module):
    """Stands for dropout: what goes through it can be told from what doesn't."""

    def forward(self, x: Tensor) -> Tensor:
        return x / 2


@pytest.mark.parametrize("name", RESIDUALS)
def test_residual_is_its_formula(name: str) -> None:
    residual = Residual(replace(PAPER, norm=name.split()[0], skip="without" not in name))
    for parameter in residual.parameters():
        nn.init.normal_(parameter)
    residual.dropout = Half()  # type: ignore[assignment]
    x, weight = torch.randn(2, 5, D), torch.randn(D, D)

    def layer(x: Tensor) -> Tensor:
        return torch.tanh(x @ weight)

    assert_close(residual(x, layer), RESIDUALS[name](x, layer, residual.norm, Half()))


def feed_forward(**options: str) -> FeedForward:
    layer = FeedForward(replace(PAPER, **options))  # type: ignore[arg-type]
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


@pytest.mark.parametrize(("name", "activation"), [("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu)])
def test_feed_forward_is_its_formula(name: str, activation: Function) -> None:
    x = torch.randn(2, 5, D)
    two, gated = feed_forward(activation=name), feed_forward(activation=name, dense="gated")
    one = feed_forward(activation=name, dense="one")

    w1, b1, w2, b2 = two.parameters()
    assert_close(two(x), activation(x @ w1.T + b1) @ w2.T + b2, rtol=1e-4, atol=1e-4)

    w1, b1, w2, b2 = gated.parameters()
    value, gate = (x @ w1.T + b1).split(PAPER.feed_forward, dim=-1)
    assert_close(gated(x), (value * activation(gate)) @ w2.T + b2, rtol=1e-4, atol=1e-4)

    (w,) = one.parameters()
    assert w.shape == (D, D)
    assert_close(one(x), activation(x @ w.T), rtol=1e-4, atol=1e-4)


def test_dropout_acts_on_every_sub_layer_and_both_embeddings() -> None:
    """Paper 5.4. If all of them drop everything, nothing at all is left: no embedding and no sub-layer's output."""
    model = Transformer(replace(PAPER, dropout=0.3, norm="none"))
    dropouts = [module for module in model.modules() if isinstance(module, Dropout)]
    assert len(dropouts) == 1 + 2 * PAPER.encoder_blocks + 3 * PAPER.decoder_blocks
    assert {dropout.dropped for dropout in dropouts} == {round(0.3 * 65536)}
    acted: list[nn.Module] = []

    def drop_all(module: nn.Module, _: object, output: Tensor) -> Tensor:
        acted.append(module)
        return output * 0

    for dropout in dropouts:
        dropout.register_forward_hook(drop_all)
    hidden = model(*random_source(2, 5), random_ids(2, 7))
    assert torch.equal(hidden, torch.zeros(2, 7, D))
    assert len(acted) == len(dropouts) + 1  # the embeddings' is used twice
    assert set(acted) == set(dropouts)


def test_training_differs_from_eval_by_dropout_only() -> None:
    inputs = *random_source(2, 5), random_ids(2, 7)
    for rate, same in ((0.0, True), (0.3, False)):
        model = Transformer(replace(PAPER, dropout=rate))
        assert torch.equal(model.train()(*inputs), model.eval()(*inputs)) == same
        assert torch.equal(model.eval()(*inputs), model.eval()(*inputs))


LARGE = TransformerOptions(
    source_vocabulary=503,
    target_vocabulary=503,
    width=106,
    heads=2,
    head_width=37,
    feed_forward=211,
    encoder_blocks=1,
    decoder_blocks=1,
    bias=True,
    output_bias=True,
)


@pytest.mark.parametrize("tied", ["all", "target", "none"])
def test_weights_begin_as_the_file_says(tied: str) -> None:
    model = Transformer(replace(LARGE, tied=tied))
    for embedding in (model.source_embedding, model.target_embedding):
        assert isinstance(embedding, nn.Embedding)
        assert embedding.weight.std().item() == pytest.approx(LARGE.width**-0.5, rel=0.03)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            assert_glorot(module.output.weight)
        if isinstance(module, FeedForward):
            assert_glorot(module.inner.weight)
            assert_glorot(module.outer.weight)
        if isinstance(module, nn.Linear):
            assert not module.bias.any()
    if tied == "none":
        assert_glorot(model.output.weight)


def test_queries_keys_and_values_begin_each_in_its_own_size() -> None:
    for module in Transformer(LARGE).modules():
        if isinstance(module, MultiHeadAttention):
            for kind in module.projections.weight.split(module.joined):
                assert_glorot(kind)


def assert_glorot(weight: object) -> None:
    """Uniform within ±√(6 / (inputs + outputs)): the bound is nearly reached and never passed."""
    assert isinstance(weight, Tensor)
    bound = (6 / sum(weight.shape)) ** 0.5
    assert 0.99 * bound < weight.abs().max().item() <= bound
    assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.03)
