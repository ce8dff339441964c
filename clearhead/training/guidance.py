"""Guided alignment (Garg et al. 2019): one head of the decoder learns to look at what the next word translates.

Its weight at the linked source token is drawn towards one, by the word alignments that were computed from the corpus.
The model knows nothing of it: a hook on the cross-attention sees queries and keys, and the weights of the one head are
computed once more. A head that follows the words is what guards, glossaries and marks of a translator stand on.

B sentences, T target tokens, S source tokens, H heads, K head width.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from clearhead.data.prepare import Prepared
from clearhead.decoding.options import AlignmentHead
from clearhead.model import Seq2Seq, TransformerOptions
from clearhead.model.attention import ScaledDotProduct
from clearhead.model.transformer import Transformer

from .settings import Settings


@dataclass(frozen=True)
class Guide:
    """Which head is taught, and what its loss counts beside that of the words."""

    head: AlignmentHead
    weight: float


def make_guide(settings: Settings, prepared: Prepared) -> Guide | None:
    """For the first head of the last decoder block but one; none where nothing is taught.

    The first: CTranslate2 averages the first so many heads of a layer.
    """
    model, weight = settings.model, settings.training.guided_alignment
    if not weight or prepared.links is None:
        return None
    if not isinstance(model, TransformerOptions) or not model.encoder_blocks or not model.decoder_blocks:
        return None
    return Guide(AlignmentHead(max(0, model.decoder_blocks - 2), 0), weight)


@contextmanager
def guided(model: Seq2Seq, head: AlignmentHead | None, links: Tensor | None) -> Iterator[list[Tensor]]:
    """While it is open, each forward pass adds its loss to the list: the sum over the tokens that have a link."""
    losses: list[Tensor] = []
    if head is None or links is None:
        yield losses
        return

    def look(module: nn.Module, inputs: tuple[Any, ...], _: Tensor) -> None:
        assert isinstance(module, ScaledDotProduct)
        q, k, _v, mask = inputs
        losses.append(alignment_loss(q[:, head.head], k[:, head.head], mask, module.scale, links))

    handle = _cross_attention(model, head.block).register_forward_hook(look)
    try:
        yield losses
    finally:
        handle.remove()


def alignment_loss(q: Tensor, k: Tensor, mask: Tensor | None, scale: float, links: Tensor) -> Tensor:
    """-log of the weight of one head, q (B, T, K) and k (B, S, K), at each place of `links` (B, T) from 0 on, summed.

    Rows of q that repeat the batch, as R-Drop reads it twice, count half.
    """
    readings = len(q) // len(links)
    links = links.repeat(readings, 1)
    scores = q.float() @ k.float().transpose(1, 2) * scale  # (B, T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask[:, 0], float("-inf"))
    picked = scores.gather(2, links.clamp(min=0)[:, :, None])[:, :, 0]  # (B, T)
    losses = scores.logsumexp(dim=2) - picked
    return losses.masked_fill(links < 0, 0.0).sum() / readings


def _cross_attention(model: Seq2Seq, block: int) -> nn.Module:
    assert isinstance(model, Transformer)
    attention = model.get_submodule(f"decoder.{block}.cross_attention.dot_product")
    assert isinstance(attention, ScaledDotProduct)
    return attention
