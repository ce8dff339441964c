"""What changes if something is taken away: a head, a source word, the whole source.

B sentences, H heads, T target tokens, S source tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.data.batching import Batch
from clearhead.data.tokenizer import UNK
from clearhead.errors import USAGE, UserError
from clearhead.model import Seq2Seq
from clearhead.model.attention import MultiHeadAttention

from .record import Hook, Place, attention_layers, hook_point, hooked


@torch.inference_mode()
def without_each_head(model: Seq2Seq, batch: Batch, heads: int) -> dict[Place, list[float]]:
    """For each layer and head the change of the mean log-probability of the target (of one pair) without it."""
    whole = _log_p(model, batch).mean()
    changes = {}
    for place, attention in attention_layers(model).items():
        rows = heads if heads > 1 else 1
        with hooked({hook_point(attention): _switch_off(rows)}):
            changes[place] = (_log_p(model, _repeated(batch, rows)).mean(dim=1) - whole).tolist()
    return changes


def _switch_off(heads: int) -> Any:
    """In row h, head h gives nothing. An RNN's attention is one head."""

    def silence(_: nn.Module, __: tuple[Any, ...], out: Tensor) -> Tensor:
        if heads == 1:
            return torch.zeros_like(out)
        speaks = 1 - torch.eye(heads, device=out.device, dtype=out.dtype)
        return out * speaks[:, :, None, None]

    return silence


def silenced(model: Seq2Seq, off: Sequence[tuple[str, int, int]]) -> dict[nn.Module, Hook]:
    """Hooks by which these heads, each a kind, a layer and a head from 0, give nothing; see `record.hooked`."""
    heads: dict[Place, set[int]] = {}
    for kind, layer, head in off:
        heads.setdefault(Place(kind, layer), set()).add(head)
    layers = attention_layers(model)
    for place, some in heads.items():
        attention = layers.get(place)
        most = 0 if attention is None else attention.heads if isinstance(attention, MultiHeadAttention) else 1
        wrong = [head for head in sorted(some) if not 0 <= head < most]
        if wrong:
            asked = f"{place.kind}:{place.layer + 1}:{wrong[0] + 1}"
            message = f"there is no head {asked}, counted from 1, to be switched off; this layer has {most} heads"
            raise UserError("HEAD", f"{message}; choose another", USAGE)
    return {hook_point(layers[place]): _silence(some) for place, some in heads.items()}


def _silence(heads: set[int]) -> Hook:
    def silence(_: nn.Module, __: tuple[Any, ...], out: Tensor) -> Tensor:
        if out.dim() < 4:  # an RNN's attention is one head
            return torch.zeros_like(out)
        speaks = torch.ones(out.shape[1], device=out.device, dtype=out.dtype)
        speaks[sorted(heads)] = 0
        return out * speaks[:, None, None]

    return silence


@torch.inference_mode()
def occlusion(model: Seq2Seq, batch: Batch, steps: int | None = None) -> Tensor:
    """(T, steps): the change of each target token's log-probability if a source token (of one pair) is unknown.

    `steps` is what the encoder sees of numbers, if less than all; what is known of them without looking is the mean.
    """
    S = batch.src.shape[1]
    steps = steps or S
    hidden = _repeated(batch, steps)
    wide = -(-S // steps)  # steps of numbers that the encoder sees as one
    taken = torch.eye(steps, dtype=torch.bool, device=hidden.src.device).repeat_interleave(wide, dim=1)[:, :S]
    taken = taken.view(*taken.shape, *[1] * (hidden.src.dim() - 2))
    src = torch.where(taken, _nothing(hidden.src), hidden.src)
    return (_log_p(model, replace(hidden, src=src)) - _log_p(model, batch)).T


@torch.inference_mode()
def source_contributions(model: Seq2Seq, batch: Batch, log_p: Tensor) -> list[float]:
    """For each target token how far its distribution `log_p` (T, V) is from that of an unknown source, 0 to 1.

    Half the sum of the differences of the probabilities (total variation).
    """
    src = _nothing(batch.src)
    if not src.is_floating_point():
        src[:, -1] = batch.src[:, -1]  # the end stays an end
    hidden = model(src, batch.src_mask, batch.tgt_in)
    blind = model.logits(hidden)[0].float().softmax(dim=-1)
    return (0.5 * (log_p.exp() - blind).abs().sum(dim=-1)).tolist()


def _nothing(src: Tensor) -> Tensor:
    return torch.zeros_like(src) if src.is_floating_point() else torch.full_like(src, UNK)


def _log_p(model: Seq2Seq, batch: Batch) -> Tensor:
    """(B, T)."""
    logits = model.logits(model(batch.src, batch.src_mask, batch.tgt_in)).float()
    return logits.log_softmax(dim=-1).gather(2, batch.tgt_out[:, :, None]).squeeze(2)


def _repeated(batch: Batch, n: int) -> Batch:
    """The one pair n times."""
    return replace(
        batch,
        src=batch.src.repeat(n, *[1] * (batch.src.dim() - 1)),
        src_mask=batch.src_mask.repeat(n, 1),
        tgt_in=batch.tgt_in.repeat(n, 1),
        tgt_out=batch.tgt_out.repeat(n, 1),
    )
