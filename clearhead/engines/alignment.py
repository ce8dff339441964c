"""Which source token each target token looked at: a second look at finished translations, teacher-forced.

B sentences, H heads, T target tokens, S source tokens.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.data.batching import make_batch
from clearhead.model import Seq2Seq
from clearhead.model.attention import ScaledDotProduct, attention_weights
from clearhead.model.transformer import DecoderBlock

from .batches import batches_by_length
from .native import TOKENS_PER_BATCH


def align(model: Seq2Seq, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[list[int]]:
    """For each target token the place of the source token with most attention; nothing for a model without heads.

    Heads are averaged in the last decoder block but one, where they follow the words best (Garg et al. 2019).
    """
    block = _aligning_block(model)
    results: list[list[int]] = [[] for _ in sources]
    if block is None:
        return results
    lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    for places in batches_by_length(lengths, TOKENS_PER_BATCH):
        pairs = [(sources[place], targets[place]) for place in places]
        weights = _cross_attention(model, block, pairs)
        for place, (source, target), looks in zip(places, pairs, weights, strict=True):
            if source and target:  # EOS is no word: neither what looks nor what is looked at
                results[place] = looks[: len(target), : len(source)].argmax(dim=1).tolist()
    return results


@torch.inference_mode()
def _cross_attention(model: Seq2Seq, block: DecoderBlock, pairs: Sequence[tuple[list[int], list[int]]]) -> Tensor:
    """Mean over heads, (B, T, S)."""
    seen: list[Tensor] = []

    def keep(product: nn.Module, inputs: tuple[Any, ...], _: Tensor) -> None:
        q, k, _v, mask = inputs
        assert isinstance(product, ScaledDotProduct)
        seen.append(attention_weights(q, k, mask, product.scale).mean(dim=1))

    device = block.cross_attention.projections.weight.device
    batch = make_batch(pairs).to(str(device))
    handle = block.cross_attention.dot_product.register_forward_hook(keep)
    try:
        model(batch.src, batch.src_mask, batch.tgt_in)
    finally:
        handle.remove()
    return seen[0].float().cpu()


def _aligning_block(model: Seq2Seq) -> DecoderBlock | None:
    modules = model.modules() if isinstance(model, nn.Module) else []
    blocks = [module for module in modules if isinstance(module, DecoderBlock)]
    return blocks[max(0, len(blocks) - 2)] if blocks else None
