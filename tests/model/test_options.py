"""Every refusal of the options, with its numbers; the defaults, and how large the named sizes are."""

from dataclasses import replace
from itertools import combinations

import pytest
import torch
from torch import nn

from clearhead.model import SIZES, ModelOptions, RNNOptions, TransformerOptions, build
from clearhead.model.transformer import Transformer
from tests.samples import LSTM, PAPER, VARIANTS, make_model

WORDS = 37000
TRANSFORMER_SIZES = [
    "source_vocabulary",
    "target_vocabulary",
    "width",
    "heads",
    "feed_forward",
    "decoder_blocks",
    "max_positions",
    "head_width",
]
CHOICES = {
    "tied": "all, target, none",
    "positions": "sinusoidal, sinusoidal-half, learned, rotary, none, own",
    "norm": "post, pre, branch, none",
    "normalizer": "layer, rms, batch",
    "dense": "two, gated, one",
    "activation": "relu, gelu, silu",
    "scale": "head_width, width, none",
}


@pytest.mark.parametrize("name", TRANSFORMER_SIZES)
@pytest.mark.parametrize("size", [0, -3])
def test_transformer_sizes_are_positive(name: str, size: int) -> None:
    with pytest.raises(ValueError, match=f"^{name} is {size}; expected at least 1$"):
        TransformerOptions(**{name: size})  # type: ignore[arg-type]


def test_without_an_encoder_there_is_one_embedding() -> None:
    assert TransformerOptions(encoder_blocks=0).tied == "all"
    with pytest.raises(ValueError, match="encoder_blocks is -3; expected at least 0"):
        TransformerOptions(encoder_blocks=-3)
    for tied in ("target", "none"):
        with pytest.raises(ValueError, match=f"tied is '{tied}', but without an encoder"):
            TransformerOptions(encoder_blocks=0, tied=tied)
        with pytest.raises(ValueError, match=f"tied is '{tied}', but without an encoder"):
            RNNOptions(encoder=False, tied=tied)


@pytest.mark.parametrize("name", ["source_vocabulary", "target_vocabulary", "width", "layers"])
@pytest.mark.parametrize("size", [0, -3])
def test_rnn_sizes_are_positive(name: str, size: int) -> None:
    with pytest.raises(ValueError, match=f"^{name} is {size}; expected at least 1$"):
        RNNOptions(**{name: size})  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "choices"), CHOICES.items())
def test_transformer_choices(name: str, choices: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} is 'nonsense'; expected one of {choices}$"):
        TransformerOptions(**{name: "nonsense"})  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "choices"), [("cell", "tanh, gru, lstm"), ("tied", "all, target, none")])
def test_rnn_choices(name: str, choices: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} is 'nonsense'; expected one of {choices}$"):
        RNNOptions(**{name: "nonsense"})  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [PAPER, LSTM], ids=["transformer", "rnn"])
@pytest.mark.parametrize("rate", [-0.1, 1.0, 7.0])
def test_dropout_is_a_rate(options: ModelOptions, rate: float) -> None:
    with pytest.raises(ValueError, match=f"^dropout is {rate}; expected a number from 0 up to, but not, 1$"):
        replace(options, dropout=rate)


@pytest.mark.parametrize("options", [PAPER, LSTM], ids=["transformer", "rnn"])
def test_tied_all_needs_one_vocabulary(options: ModelOptions) -> None:
    with pytest.raises(ValueError, match='source_vocabulary is 19 and target_vocabulary 17; use tied = "target"'):
        replace(options, tied="all", source_vocabulary=19, target_vocabulary=17)


@pytest.mark.parametrize(("width", "heads", "advice"), [(14, 3, 15), (13, 7, 14), (3, 5, 5)])
def test_width_splits_into_heads(width: int, heads: int, advice: int) -> None:
    message = f"^width {width} cannot be split into {heads} heads; try width {advice}, or set head_width$"
    with pytest.raises(ValueError, match=message):
        replace(PAPER, width=width, heads=heads)
    assert replace(PAPER, width=advice, heads=heads).key_width * heads == advice
    assert replace(PAPER, width=width, heads=heads, head_width=11).key_width == 11


def test_heads_fill_the_width_without_output_projection() -> None:
    message = r"^without output_projection 3 heads of 5 are concatenated to 15 numbers, but .* a width of 14; make"
    with pytest.raises(ValueError, match=message):
        replace(PAPER, output_projection=False, heads=3, head_width=5)
    replace(PAPER, output_projection=False, heads=2, head_width=7)


def test_rotary_needs_pairs() -> None:
    with pytest.raises(
        ValueError, match=r"^rotary .* head_width is 7; expected an even one, or positions = .sinusoidal.$"
    ):
        replace(PAPER, positions="rotary", heads=2)
    replace(PAPER, positions="rotary", heads=2, head_width=6)


@pytest.mark.parametrize(
    ("scale", "factor"), [("head_width", 5**-0.5), ("width", 14**-0.5), ("none", 1.0), (0.3, 0.3), (2, 2)]
)
def test_score_scale(scale: str | float, factor: float) -> None:
    assert replace(PAPER, heads=3, head_width=5, scale=scale).score_scale == pytest.approx(factor)


@pytest.mark.parametrize("norm", ["post", "pre", "branch", "none"])
def test_only_pre_norm_ends_with_a_norm_unless_told(norm: str) -> None:
    assert replace(PAPER, norm=norm).ends_with_norm == (norm == "pre")
    for told in (True, False):
        options = replace(PAPER, norm=norm, final_norm=told)
        assert options.ends_with_norm == told
        model = Transformer(options)
        assert isinstance(model.encoder_norm, nn.LayerNorm) == isinstance(model.decoder_norm, nn.LayerNorm) == told


def test_defaults_are_the_papers_base_model() -> None:
    """Table 3, row base; sections 3 and 5.4."""
    base = TransformerOptions()
    sizes = base.encoder_blocks, base.decoder_blocks, base.width, base.feed_forward, base.heads, base.key_width
    assert sizes == (6, 6, 512, 2048, 8, 64)
    assert (base.dropout, base.score_scale) == (0.1, 64**-0.5)
    assert (base.positions, base.norm, base.normalizer, base.skip) == ("sinusoidal", "post", "layer", True)
    assert (base.dense, base.activation, base.tied, base.scale_embedding) == ("two", "relu", "all", True)
    assert (base.bias, base.output_bias, base.output_projection, base.ends_with_norm) == (False, False, True, False)
    assert base.source_vocabulary == base.target_vocabulary == WORDS
    assert SIZES["base"] == base


def test_big_is_the_papers_big_model() -> None:
    """Table 3, row big."""
    wider = {"width": 1024, "feed_forward": 4096, "heads": 16, "dropout": 0.3}
    assert SIZES["big"] == replace(TransformerOptions(), **wider)  # type: ignore[arg-type]


def transformer_parameters(blocks: int, D: int, F: int) -> int:
    """One embedding for three uses; in each block matrices, the two biases of the feed-forward, the norms."""
    attention, feed_forward, norm = 4 * D * D, 2 * D * F + F + D, 2 * D
    encoder_block = attention + feed_forward + 2 * norm
    decoder_block = 2 * attention + feed_forward + 3 * norm
    return WORDS * D + blocks * (encoder_block + decoder_block)


def lecture_parameters(blocks: int, D: int) -> int:
    """Three matrices per attention and one per Dense: (3 + 1) in an encoder block, (3 + 3 + 1) in a decoder block."""
    return WORDS * D + blocks * 11 * D * D


def rnn_parameters(D: int) -> int:
    """Two layers of GRUs, whose three gates have one matrix per input and two biases."""

    def gru(inputs: int) -> int:
        return 3 * (inputs * D + D * D + 2 * D)

    encoder = 2 * gru(D) + 2 * gru(2 * D)
    decoder = gru(3 * D) + gru(D)
    start, join = 2 * (D * D + D), 3 * D * D + D
    attention = D * D + 2 * D * D + D
    return 2 * WORDS * D + encoder + decoder + start + join + attention


@pytest.mark.parametrize(
    ("name", "count", "formula"),
    [
        ("tiny", 6_054_912, transformer_parameters(4, 128, 256)),
        ("small", 14_992_384, transformer_parameters(3, 256, 1024)),
        ("base", 63_045_632, transformer_parameters(6, 512, 2048)),  # the paper prints 65 million
        ("big", 214_171_648, transformer_parameters(6, 1024, 4096)),  # and 213
        ("lecture", 36_245_504, lecture_parameters(6, 512)),
        ("rnn", 22_624_256, rnn_parameters(256)),
    ],
)
def test_named_sizes_have_as_many_parameters_as_the_formula_says(name: str, count: int, formula: int) -> None:
    with torch.device("meta"):
        model = build(SIZES[name])
    assert sum(parameter.numel() for parameter in model.parameters()) == formula == count


def test_every_named_size_is_counted_here() -> None:
    assert list(SIZES) == ["tiny", "small", "base", "big", "lecture", "rnn"]


@pytest.mark.parametrize("name", VARIANTS)
def test_blocks_share_no_tensor(name: str) -> None:
    """Each block has its own parameters, of its own memory; only embeddings and output may be tied."""
    model = make_model(VARIANTS[name])
    named = [(n, p) for n, p in model.named_parameters(remove_duplicate=False)]
    shared = {frozenset((n, m)) for (n, p), (m, q) in combinations(named, 2) if p.data_ptr() == q.data_ptr()}
    source, target, output = "source_embedding.weight", "target_embedding.weight", "output.weight"
    tied = {"all": [source, target, output], "target": [target, output], "none": []}[VARIANTS[name].tied]
    assert shared == {frozenset(pair) for pair in combinations(tied, 2)}
