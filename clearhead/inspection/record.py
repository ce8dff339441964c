"""The weights of every head, by forward hooks, while the model runs once more over finished text, teacher-forced.

B sentences, H heads, Q positions that look, K positions that are looked at, d head width, D model width.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.data.batching import Batch
from clearhead.model import Seq2Seq
from clearhead.model.attention import MultiHeadAttention, attention_weights
from clearhead.model.rnn import AdditiveAttention
from clearhead.model.transformer import DecoderBlock, EncoderBlock, Residual

KINDS = ("encoder", "decoder", "cross")
SUBLAYERS = {
    "around_attention": "attention",
    "around_cross_attention": "cross_attention",
    "around_feed_forward": "feed_forward",
}
CLOSE = 1e-4  # the weights times the values must give what the fused kernel gave

Attention = MultiHeadAttention | AdditiveAttention
Hook = Callable[[nn.Module, tuple[Any, ...], Tensor], Tensor | None]


class Place(NamedTuple):
    """One attention layer: of the encoder, of the decoder, or from decoder to source."""

    kind: str
    layer: int


@dataclass
class Look:
    """What one attention layer did: who looked where, and for the Transformer with which q, k and v."""

    weights: Tensor  # (B, H, Q, K)
    out: Tensor  # (B, H, Q, d)
    q: Tensor | None = None  # (B, H, Q, d)
    k: Tensor | None = None  # (B, H, K, d)
    v: Tensor | None = None
    x: Tensor | None = None  # (B, Q, D), what q was made of
    memory: Tensor | None = None  # (B, K, D), what k and v were made of


@dataclass
class Stream:
    """How long the vectors were before and after a sub-layer with its residual connection, (B, Q) each."""

    stack: str  # encoder or decoder
    layer: int
    sublayer: str
    norm_in: Tensor
    norm_out: Tensor


@dataclass
class Recording:
    """All that one teacher-forced pass showed."""

    looks: dict[Place, Look]
    streams: list[Stream]
    log_p: Tensor  # (B, Q, V): of every word after every position


def attention_layers(model: Seq2Seq) -> dict[Place, Attention]:
    """Those of the encoder first, then the decoder's with their cross-attention; an RNN's, if it has one."""
    found: dict[Place, Attention] = {}
    encoder_blocks = 0
    for module in _modules(model):
        if isinstance(module, EncoderBlock):
            found[Place("encoder", encoder_blocks)] = module.attention
            encoder_blocks += 1
        elif isinstance(module, DecoderBlock):
            found[Place("decoder", module.index)] = module.attention
            if module.cross_attention is not None:
                found[Place("cross", module.index)] = module.cross_attention
        elif isinstance(module, AdditiveAttention):
            found[Place("cross", 0)] = module
    return found


def hook_point(attention: Attention) -> nn.Module:
    """The module whose inputs are q, k, v and whose output is the weighted sum."""
    return attention.dot_product if isinstance(attention, MultiHeadAttention) else attention


@contextmanager
def hooked(hooks: dict[nn.Module, Hook]) -> Iterator[None]:
    """While it is open, each module's hook sees what goes in and out, and may change what comes out.

    Of several the innermost is asked first: a recording inside sees what a head said that is then switched off.
    """
    handles = [module.register_forward_hook(hook, prepend=True) for module, hook in hooks.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.inference_mode()
def record(model: Seq2Seq, batch: Batch) -> Recording:
    """Run the model over a batch and keep what its attention layers and residual connections did."""
    looks: dict[Place, Look] = {}
    streams: list[Stream] = []
    hooks: dict[nn.Module, Hook] = {}
    inputs: dict[Place, dict[str, Tensor]] = {}
    for place, attention in attention_layers(model).items():
        if isinstance(attention, MultiHeadAttention):
            hooks[attention.dot_product] = _keep_heads(looks, place)
            hooks[attention.projections] = _keep_input(inputs.setdefault(place, {}), attention.joined)
        else:
            hooks[attention] = _keep_step(looks, place)
    for block, layer in _blocks(model):
        for name, sublayer in SUBLAYERS.items():
            residual = getattr(block, name, None)
            if isinstance(residual, Residual):
                stack = "decoder" if isinstance(block, DecoderBlock) else "encoder"
                hooks[residual] = _keep_norms(streams, stack, layer, sublayer)
    with hooked(hooks):
        hidden = model(batch.src, batch.src_mask, batch.tgt_in)
    for place, made_of in inputs.items():
        looks[place].x, looks[place].memory = made_of["x"], made_of.get("memory")
    return Recording(looks, streams, model.logits(hidden).float().log_softmax(dim=-1))


def _keep_heads(looks: dict[Place, Look], place: Place) -> Hook:
    def keep(product: nn.Module, inputs: tuple[Any, ...], out: Tensor) -> None:
        q, k, v, mask = inputs
        scale = product.scale
        assert isinstance(scale, float)
        weights = attention_weights(q, k, mask, scale)
        difference = float((weights @ v - out).abs().max())
        if difference > CLOSE * max(1.0, float(out.abs().max())):
            raise ValueError(f"{place}: recomputed weights give values {difference:.2g} off the model's")
        looks[place] = Look(weights.float(), out, q, k, v)

    return keep


def _keep_input(kept: dict[str, Tensor], joined: int) -> Hook:
    """`projections` makes q of what looks and, apart or in the same product, k and v of what is looked at."""

    def keep(_: nn.Module, inputs: tuple[Any, ...], out: Tensor) -> None:
        makes_keys_alone = out.shape[-1] == 2 * joined
        kept["memory" if makes_keys_alone else "x"] = inputs[0]

    return keep


def _keep_step(looks: dict[Place, Look], place: Place) -> Hook:
    """An RNN looks once for each target token, one after another."""

    def keep(attention: nn.Module, inputs: tuple[Any, ...], out: Tensor) -> None:
        assert isinstance(attention, AdditiveAttention)
        hidden, keys, _values, mask = inputs
        weights = attention.weights(hidden, keys, mask).float()[:, None]  # (B, 1, 1, K)
        if place not in looks:
            looks[place] = Look(weights, out[:, None])
            return
        before = looks[place]
        looks[place] = Look(torch.cat([before.weights, weights], dim=2), torch.cat([before.out, out[:, None]], dim=2))

    return keep


def _keep_norms(streams: list[Stream], stack: str, layer: int, sublayer: str) -> Hook:
    def keep(_: nn.Module, inputs: tuple[Any, ...], out: Tensor) -> None:
        streams.append(Stream(stack, layer, sublayer, inputs[0].norm(dim=-1), out.norm(dim=-1)))

    return keep


def _blocks(model: Seq2Seq) -> list[tuple[nn.Module, int]]:
    blocks: list[tuple[nn.Module, int]] = []
    encoder = [module for module in _modules(model) if isinstance(module, EncoderBlock)]
    blocks += [(block, i) for i, block in enumerate(encoder)]
    return blocks + [(block, block.index) for block in _modules(model) if isinstance(block, DecoderBlock)]


def _modules(model: Seq2Seq) -> list[nn.Module]:
    return list(model.modules()) if isinstance(model, nn.Module) else []
