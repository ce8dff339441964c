"""One sentence's way through the whole network: shapes and first numbers at each stop, in the order of the notes.

B sentences (one), S source tokens, T target tokens, D width, H heads, d head width.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.data.batching import make_batch
from clearhead.data.features import Source
from clearhead.model.attention import MultiHeadAttention, attention_weights
from clearhead.model.rnn import RNN
from clearhead.model.transformer import DecoderBlock, EncoderBlock, FeedForward, Transformer

from .inspect import Subject, multiply_exactly
from .record import Hook, hooked
from .trace import Trace

SHOWN = 4  # numbers of each stop
ADDED = {"post": "add, then norm", "pre": "add (norm came first)", "branch": "norm, then add", "none": "add"}


@dataclass(frozen=True)
class Stop:
    """Something that was computed: what, of which shape, and how it begins."""

    title: str
    what: str
    shape: tuple[int, ...]
    numbers: tuple[float, ...]

    def __str__(self) -> str:
        size = " × ".join(map(str, self.shape))
        numbers = "  ".join(f"{number:+.3f}" for number in self.numbers)
        return f"{self.title:<34} {size:<16} {numbers} …   {self.what}".rstrip()


@torch.inference_mode()
def walk(subject: Subject, trace: Trace, features: np.ndarray | None = None) -> list[Stop]:
    """All stops of a recorded translation, source first, in the order in which they are computed.

    `features` are what the source was, if it was no text.
    """
    model = subject.model
    assert isinstance(model, nn.Module)
    multiply_exactly(model)
    ids = [token.id for token in trace.source.tokens[:-1]]
    source: Source = ids if features is None else features
    target = [token.id for token in trace.target.tokens[1:-1]]
    batch = make_batch([(source, target)])
    stops: list[Stop] = []
    hooks = _transformer_hooks(model, stops) if isinstance(model, Transformer) else _rnn_hooks(model, stops)
    with hooked(hooks):
        hidden = model(batch.src, batch.src_mask, batch.tgt_in)
    logits = model.logits(hidden)
    stops.append(_stop("logits", f"one number for each of {logits.shape[-1]:,} words", logits))
    chances = logits.float().softmax(dim=-1)
    stops.append(_stop("softmax", "the probability of each word at each position", chances))
    chosen = chances[0].gather(1, batch.tgt_out[0][:, None]).squeeze(1)
    words = " ".join(token.text for token in trace.target.tokens[1:])
    stops.append(_stop("p of the words written", words, chosen))
    return stops


def _stop(title: str, what: str, values: Tensor) -> Stop:
    """The first numbers are those of the first token, or of the first row of the first head."""
    return Stop(title, what, tuple(values.shape), tuple(values.flatten()[:SHOWN].tolist()))


def _note(stops: list[Stop], title: str, what: str) -> Hook:
    def note(_: nn.Module, __: tuple[Any, ...], out: Tensor) -> None:
        stops.append(_stop(title, what, out))

    return note


def _transformer_hooks(model: Transformer, stops: list[Stop]) -> dict[nn.Module, Hook]:
    added = ADDED[model.options.norm]
    hooks: dict[nn.Module, Hook] = {model.dropout: _embedding_note(model, stops)}
    for i, block in enumerate(model.encoder):
        assert isinstance(block, EncoderBlock)
        name = f"encoder {i + 1}"
        hooks |= _attention_hooks(stops, block.attention, f"{name} self-attention")
        hooks |= _block_hooks(stops, block, name, added)
    for i, block in enumerate(model.decoder):
        assert isinstance(block, DecoderBlock)
        name = f"decoder {i + 1}"
        hooks |= _attention_hooks(stops, block.attention, f"{name} masked self-attention")
        if block.cross_attention is not None and block.around_cross_attention is not None:
            hooks |= _attention_hooks(stops, block.cross_attention, f"{name} cross-attention")
            hooks[block.around_cross_attention] = _note(stops, f"{name} {added}", "to what it had before")
        hooks |= _block_hooks(stops, block, name, added)
    hooks[model.encoder_norm] = _note(stops, "encoder's end", "what every decoder block looks at")
    hooks[model.decoder_norm] = _note(stops, "decoder's end", "what the output layer reads")
    return hooks


def _block_hooks(stops: list[Stop], block: EncoderBlock | DecoderBlock, name: str, added: str) -> dict[nn.Module, Hook]:
    """Modules without weights of their own are told apart by their block."""
    feed_forward: FeedForward = block.feed_forward
    inner = "each position for itself" if feed_forward.gated else "each position for itself, activated"
    return {
        block.around_attention: _note(stops, f"{name} {added}", "to what it had before"),
        feed_forward.inner: _note(stops, f"{name} feed-forward, inner", inner),
        feed_forward: _note(stops, f"{name} feed-forward", "back to the width of the model"),
        block.around_feed_forward: _note(stops, f"{name} {added}", "the block's output"),
    }


def _embedding_note(model: Transformer, stops: list[Stop]) -> Hook:
    """The model's own dropout comes right after embedding and position: source first, then target."""
    titles = iter(("source", "target"))

    options = model.options
    scaled = f" × √{options.width}" if options.scale_embedding else ""
    is_turned = options.positions == "rotary"
    placed = "; rotary positions turn queries and keys instead" if is_turned else f" + {options.positions} positions"

    def note(_: nn.Module, __: tuple[Any, ...], out: Tensor) -> None:
        stops.append(_stop(f"{next(titles)} embedded", f"embedding{scaled}{placed}", out))

    return note


def _attention_hooks(stops: list[Stop], attention: MultiHeadAttention, name: str) -> dict[nn.Module, Hook]:
    def heads(_: nn.Module, inputs: tuple[Any, ...], out: Tensor) -> None:
        q, k, _v, mask = inputs
        scale = attention.dot_product.scale
        products = q @ k.transpose(-2, -1)
        what = "and only the past" if mask is not None and mask.shape[-2] > 1 else "each row sums to 1"
        stops.append(_stop(f"{name}: q", "W_Q x, split into heads", q))
        stops.append(_stop("  k, v", "W_K x and W_V x of what is looked at; k is shown", k))
        stops.append(_stop("  q·k", "each query with each key", products))
        stops.append(_stop("  q·k × scale", f"× {scale:.4g}", products * scale))
        stops.append(_stop("  softmax", what, attention_weights(q, k, mask, scale)))
        stops.append(_stop("  Σ weight · v", "the weighted sum in each head", out))

    joined = _note(stops, "  concatenated, × W_O", "all heads in one vector again")
    return {attention.dot_product: heads, attention.output: joined}


def _rnn_hooks(model: nn.Module, stops: list[Stop]) -> dict[nn.Module, Hook]:
    """The encoder's states, then each target token's cells, one after another; of the steps the first is shown."""
    assert isinstance(model, RNN)
    hooks: dict[nn.Module, Hook] = {
        model.join: _first(_note(stops, "decoder, first step: output", "state and context"))
    }
    if model.attention is not None:
        hooks[model.attention] = _first(_note(stops, "decoder, first step: context", "Σ weight · encoder state"))
    for i, cell in enumerate(model.decoder):
        hooks[cell] = _first(_cell_note(stops, f"decoder, first step: cell {i + 1}"))
    if model.encoder is not None:
        hooks[model.encoder] = _encoder_note(stops)
    return hooks


def _first(hook: Hook) -> Hook:
    seen: list[bool] = []

    def once(module: nn.Module, inputs: tuple[Any, ...], out: Tensor) -> None:
        if not seen:
            hook(module, inputs, out)
        seen.append(True)

    return once


def _cell_note(stops: list[Stop], title: str) -> Hook:
    def note(_: nn.Module, __: tuple[Any, ...], out: Any) -> None:
        stops.append(_stop(title, "its new state", out[0] if isinstance(out, tuple) else out))

    return note


def _encoder_note(stops: list[Stop]) -> Hook:
    def note(_: nn.Module, __: tuple[Any, ...], out: Any) -> None:
        stops.append(_stop("encoder states", "forward and backward, one after another", out[0].data))

    return note
