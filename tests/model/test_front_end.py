"""Sources that are numbers: what is padded changes nothing, convolutions are convolutions, both models take them.

B sentences, S steps, F features, D width.
"""

from dataclasses import asdict, replace

import pytest
import torch
import torch.nn.functional as nnf
from torch import Tensor
from torch.testing import assert_close

from clearhead.decoding import DecodingOptions, search
from clearhead.model import ModelOptions
from clearhead.model.front_end import FeatureEmbedding
from clearhead.model.linear import Linear, multiply_in
from clearhead.model.options import RNNOptions, TransformerOptions
from clearhead.model.transformer import Transformer
from clearhead.options import from_dict
from tests.samples import LSTM, PAPER, TARGET_WORDS, make_model, random_ids

FEATURES = 5
KINDS: dict[str, ModelOptions] = {
    "transformer": replace(PAPER, norm="pre"),
    "rotary": replace(PAPER, positions="rotary"),
    "rnn": LSTM,
    "rnn-context": replace(LSTM, attention=False),
}
SOURCES: dict[str, ModelOptions] = {
    f"{name}-{strides}": replace(options, features=FEATURES, strides=strides)
    for name, options in KINDS.items()
    for strides in (0, 1, 3)
}


def padded(lengths: list[int], filling: float = 7.0) -> tuple[Tensor, Tensor]:
    """Random sources of these lengths; what lies beyond them must not matter, so it is large."""
    src = torch.randn(len(lengths), max(lengths), FEATURES)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.where(mask[:, :, None], src, filling), mask


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("name", SOURCES)
def test_batched_equals_alone_at_any_length(name: str) -> None:
    model = make_model(SOURCES[name]).eval()
    lengths = [11, 1, 2, 3, 5, 7, 8, 13]
    (src, mask), tgt = padded(lengths), random_ids(len(lengths), 3)
    together = model(src, mask, tgt)
    for b, length in enumerate(lengths):
        alone = model(src[b : b + 1, :length], mask[b : b + 1, :length], tgt[b : b + 1])
        assert_close(together[b : b + 1], alone)


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 10, 11])
def test_a_convolution_is_torchs(steps: int) -> None:
    front_end = FeatureEmbedding(FEATURES, strides=1, width=7)
    for parameter in front_end.parameters():
        torch.nn.init.normal_(parameter)
    src = torch.randn(2, steps, FEATURES)
    (convolution,) = front_end.convolutions
    assert isinstance(convolution, Linear)
    kernel = convolution.weight.view(7, 3, FEATURES).transpose(1, 2)  # (D, F, window)
    theirs = nnf.conv1d(src.transpose(1, 2), kernel, convolution.bias, stride=2, padding=1).transpose(1, 2)
    expected = nnf.linear(nnf.gelu(theirs), front_end.projection.weight, front_end.projection.bias)
    ours, mask = front_end.read(src, torch.ones(2, steps, dtype=torch.bool))
    assert_close(ours, expected)
    assert mask.shape == ours.shape[:2] == (2, (steps + 1) // 2)


@pytest.mark.parametrize(("strides", "left"), [(0, 11), (1, 6), (2, 3), (3, 2)])
def test_each_convolution_halves_the_steps(strides: int, left: int) -> None:
    model = make_model(replace(PAPER, features=FEATURES, strides=strides))
    assert isinstance(model, Transformer)
    src, mask = padded([11, 4])
    assert model.read(src, mask).shape == (2, left, PAPER.width)
    state = model.encode(src, mask)
    assert state.memory_mask.shape == (2, 1, 1, left)
    assert state.memory_mask[1].sum() == -(-4 // 2**strides)


@pytest.mark.parametrize("name", ["transformer-1", "rnn-1"])
def test_beam_of_one_is_greedy_and_masks_come_along(name: str) -> None:
    model = make_model(SOURCES[name]).eval()
    src, mask = padded([11, 5, 8])
    options = DecodingOptions(beam=3, n_best=3, max_length=7)
    together = search(model, src, mask, options)
    for b, length in enumerate([11, 5, 8]):
        (alone,) = search(model, src[b : b + 1, :length], mask[b : b + 1, :length], options)
        assert [h.tokens for h in alone] == [h.tokens for h in together[b]]
    greedy = search(model, src, mask, DecodingOptions(beam=1, max_length=7))
    assert [len(found) for found in greedy] == [1, 1, 1]
    sampled = search(model, src, mask, DecodingOptions(beam=1, n_best=2, temperature=1.0, max_length=7))
    assert [len(found) for found in sampled] == [2, 2, 2]


@pytest.mark.parametrize("name", ["transformer-1", "rotary-3", "rnn-1"])
def test_products_in_bfloat16_are_nearly_the_same(name: str) -> None:
    model = make_model(SOURCES[name]).eval()
    (src, mask), tgt = padded([11, 5]), random_ids(2, 3)
    exact = model(src, mask, tgt)
    multiply_in(model, torch.bfloat16)
    assert_close(model(src, mask, tgt).float(), exact, rtol=0, atol=0.15)


@pytest.mark.parametrize("name", ["transformer-3", "rnn-3"])
def test_every_parameter_learns(name: str) -> None:
    model = make_model(SOURCES[name]).train()
    src, mask = padded([11, 5])
    model.logits(model(src, mask, random_ids(2, 3))).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


def test_what_is_no_source_is_refused() -> None:
    model = make_model(SOURCES["transformer-1"])
    seen = torch.ones(2, 7, dtype=torch.bool)
    for src in (torch.zeros(2, 7, FEATURES + 1), torch.zeros(2, 7), torch.zeros(2, 7, FEATURES, dtype=torch.long)):
        with pytest.raises(ValueError, match=rf"expected numbers \(B, S, {FEATURES}\)"):
            model.encode(src, seen)
    with pytest.raises(ValueError, match="src_mask"):
        model.encode(torch.zeros(2, 7, FEATURES), seen[:, :5])
    with pytest.raises(ValueError, match="row 1 of src_mask lets 0 of 7"):
        model.encode(torch.zeros(2, 7, FEATURES), seen & torch.tensor([[True], [False]]))


@pytest.mark.parametrize("base", [PAPER, LSTM], ids=["transformer", "rnn"])
def test_options_that_make_no_model_are_refused(base: TransformerOptions | RNNOptions) -> None:
    with pytest.raises(ValueError, match="strides is 9; expected 0 to 8"):
        replace(base, strides=9)
    with pytest.raises(ValueError, match="features is 0; expected at least 1"):
        replace(base, features=0)
    with pytest.raises(ValueError, match="a source of 3 features has no words"):
        replace(base, features=3, tied="all", source_vocabulary=TARGET_WORDS)
    base = replace(base, tied="all", source_vocabulary=TARGET_WORDS)
    without = "encoder_blocks" if isinstance(base, TransformerOptions) else "encoder"
    values = {**asdict(base), "features": 3, without: type(getattr(base, without))(0)}
    with pytest.raises(ValueError, match="without an encoder no source is read"):
        from_dict(type(base), values, "model")
