"""Small models of every variant, and random input for them; all sizes are primes or products of two."""

from dataclasses import replace

import torch
from torch import Tensor

from clearhead.model import ModelOptions, RNNOptions, TransformerOptions, build
from clearhead.model.attention import MultiHeadAttention
from clearhead.model.rnn import RNN
from clearhead.model.transformer import DecoderBlock, Transformer

SOURCE_WORDS, TARGET_WORDS = 19, 17

PAPER = TransformerOptions(
    source_vocabulary=SOURCE_WORDS,
    target_vocabulary=TARGET_WORDS,
    width=14,
    heads=7,
    feed_forward=13,
    encoder_blocks=3,
    decoder_blocks=2,
    tied="target",
)
LSTM = RNNOptions(source_vocabulary=SOURCE_WORDS, target_vocabulary=TARGET_WORDS, width=11, layers=2, cell="lstm")

VARIANTS: dict[str, ModelOptions] = {
    "paper": PAPER,
    "head_width": replace(PAPER, heads=3, head_width=5),
    "scale-width": replace(PAPER, scale="width"),
    "scale-none": replace(PAPER, scale="none"),
    "scale-number": replace(PAPER, scale=0.3),
    "bias": replace(PAPER, bias=True, output_bias=True),
    "sinusoidal-half": replace(PAPER, positions="sinusoidal-half"),
    "learned": replace(PAPER, positions="learned", max_positions=31),
    "rotary": replace(PAPER, positions="rotary"),
    "no-positions": replace(PAPER, positions="none"),
    "own-positions": replace(PAPER, positions="own"),
    "pre": replace(PAPER, norm="pre"),
    "pre-without-final-norm": replace(PAPER, norm="pre", final_norm=False),
    "branch": replace(PAPER, norm="branch"),
    "no-norm": replace(PAPER, norm="none"),
    "final-norm": replace(PAPER, final_norm=True),
    "no-skip": replace(PAPER, skip=False),
    "rms": replace(PAPER, normalizer="rms"),
    "batch-norm": replace(PAPER, normalizer="batch"),
    "gelu": replace(PAPER, activation="gelu"),
    "silu": replace(PAPER, activation="silu"),
    "gated": replace(PAPER, dense="gated", activation="silu"),
    "one-matrix": replace(PAPER, dense="one"),
    "lecture": replace(PAPER, output_projection=False, dense="one", norm="none"),
    "tied-all": replace(PAPER, tied="all", source_vocabulary=TARGET_WORDS),
    "no-encoder": replace(PAPER, encoder_blocks=0, tied="all", source_vocabulary=TARGET_WORDS),
    "untied": replace(PAPER, tied="none", scale_embedding=False),
    **{
        f"{cell}-{'attention' if attention else 'context'}": replace(LSTM, cell=cell, attention=attention)
        for cell in ("tanh", "gru", "lstm")
        for attention in (True, False)
    },
    "lstm-no-encoder": replace(LSTM, encoder=False, tied="all", source_vocabulary=TARGET_WORDS),
}


def make_model(options: ModelOptions, seed: int = 7) -> Transformer | RNN:
    """In eval mode, and with norms and biases that are not at their ones and zeros any more."""
    torch.manual_seed(seed)
    own = isinstance(options, TransformerOptions) and options.positions == "own"
    model = build(options, position_in_steps if own else None)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.add_(0.3 * torch.randn_like(buffer))
    return model.eval()


def position_in_steps(positions: Tensor) -> Tensor:
    """A rule of our own: the first position / 10 + 1 channels are one."""
    return (torch.arange(PAPER.width) <= positions[:, None] / 10).float()


def random_source(sentences: int, length: int) -> tuple[Tensor, Tensor]:
    """Ids and a mask that hides a different number of places at the end of each row but the first."""
    src = torch.randint(4, TARGET_WORDS, (sentences, length))
    lengths = length - torch.arange(sentences) % length
    return src, torch.arange(length) < lengths[:, None]


def random_ids(sentences: int, length: int) -> Tensor:
    return torch.randint(4, TARGET_WORDS, (sentences, length))


def cross_attention(block: DecoderBlock) -> MultiHeadAttention:
    """Of a block that has one."""
    assert block.cross_attention is not None
    return block.cross_attention


def has_encoder(model: object) -> bool:
    """Whether the source makes a difference at all."""
    options = getattr(model, "options", None)
    return options.encoder if isinstance(options, RNNOptions) else getattr(options, "encoder_blocks", 1) > 0
