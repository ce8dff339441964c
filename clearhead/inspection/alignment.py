"""Which source token each target token looked at: a second look at finished translations, teacher-forced.

B sentences, H heads, T target tokens, S source tokens.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.data.batching import make_batch
from clearhead.engines.batches import batches_by_length
from clearhead.engines.native import TOKENS_PER_BATCH
from clearhead.model import Seq2Seq
from clearhead.model.attention import MultiHeadAttention, attention_weights

from .record import Place, attention_layers, hooked


def align(model: Seq2Seq, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[list[int]]:
    """For each target token the place of the source token with most attention; nothing for a model without heads.

    Heads are averaged in the last decoder block but one, where they follow the words best (Garg et al. 2019).
    """
    attention = _aligning_layer(model)
    results: list[list[int]] = [[] for _ in sources]
    if attention is None:
        return results
    lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
    for places in batches_by_length(lengths, TOKENS_PER_BATCH):
        pairs = [(sources[place], targets[place]) for place in places]
        weights = _mean_weights(model, attention, pairs)
        for place, (source, target), looks in zip(places, pairs, weights, strict=True):
            if source and target:  # EOS is no word: neither what looks nor what is looked at
                results[place] = looks[: len(target), : len(source)].argmax(dim=1).tolist()
    return results


@torch.inference_mode()
def _mean_weights(
    model: Seq2Seq, attention: MultiHeadAttention, pairs: Sequence[tuple[list[int], list[int]]]
) -> Tensor:
    """Mean over the heads of one cross-attention layer, (B, T, S)."""
    seen: list[Tensor] = []

    def keep(_: nn.Module, inputs: tuple[Any, ...], __: Tensor) -> None:
        q, k, _v, mask = inputs
        seen.append(attention_weights(q, k, mask, attention.dot_product.scale).mean(dim=1))

    batch = make_batch(pairs).to(str(attention.projections.weight.device))
    with hooked({attention.dot_product: keep}):
        model(batch.src, batch.src_mask, batch.tgt_in)
    return seen[0].float().cpu()


def _aligning_layer(model: Seq2Seq) -> MultiHeadAttention | None:
    layers = attention_layers(model)
    blocks = sum(place.kind == "cross" for place in layers)
    found = layers.get(Place("cross", max(0, blocks - 2)))
    return found if isinstance(found, MultiHeadAttention) else None
