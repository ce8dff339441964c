"""Where a model's decoder looked in the source: a second look at finished targets, teacher-forced.

B sentences, H heads, T target tokens, S source tokens.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clearhead.data.batching import make_batch
from clearhead.data.features import Source
from clearhead.decoding.options import AligningHeads
from clearhead.model import Seq2Seq
from clearhead.model.attention import MultiHeadAttention, attention_weights
from clearhead.model.rnn import AdditiveAttention
from clearhead.model.transformer import DecoderBlock


def aligning_attention(model: Seq2Seq, heads: AligningHeads | None) -> MultiHeadAttention | AdditiveAttention | None:
    """The attention to the source that follows the words; none if the model has none.

    Where no heads are named it is the last decoder block but one, where they follow the words best when averaged
    (Garg et al. 2019); of an RNN its only one.
    """
    if not isinstance(model, nn.Module):
        return None
    crosses: list[MultiHeadAttention | AdditiveAttention] = []
    for module in model.modules():
        if isinstance(module, DecoderBlock) and module.cross_attention is not None:
            crosses.append(module.cross_attention)
        elif isinstance(module, AdditiveAttention):
            crosses.append(module)
    if not crosses:
        return None
    return crosses[max(0, len(crosses) - 2) if heads is None else heads.block]


@torch.inference_mode()
def look(
    model: Seq2Seq,
    attention: MultiHeadAttention | AdditiveAttention,
    head: int | None,
    pairs: Sequence[tuple[Source, list[int]]],
) -> list[np.ndarray]:
    """For each pair the weights (T + 1, S + 1) of this head, or their mean over all heads; EOS last on both axes."""
    seen: list[Tensor] = []  # (B, T, S) at once, or one by one

    def keep_heads(product: nn.Module, inputs: tuple[Any, ...], _: Tensor) -> None:
        q, k, _v, mask = inputs
        chosen = slice(None) if head is None else slice(head, head + 1)
        scale = product.scale
        assert isinstance(scale, float)
        seen.append(attention_weights(q[:, chosen], k[:, chosen], mask, scale).mean(dim=1))

    def keep_step(module: nn.Module, inputs: tuple[Any, ...], _: Tensor) -> None:
        assert isinstance(module, AdditiveAttention)
        hidden, keys, _values, mask = inputs
        seen.append(module.weights(hidden, keys, mask))

    if isinstance(attention, MultiHeadAttention):
        handle = attention.dot_product.register_forward_hook(keep_heads)
    else:
        handle = attention.register_forward_hook(keep_step)
    batch = make_batch(pairs).to(str(next(attention.parameters()).device))
    try:
        model(batch.src, batch.src_mask, batch.tgt_in)
    finally:
        handle.remove()
    weights = torch.cat(seen, dim=1).float().cpu()
    return [
        one[: len(target) + 1, : len(source) + 1].contiguous().numpy()
        for one, (source, target) in zip(weights, pairs, strict=True)
    ]
