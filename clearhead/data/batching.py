"""Ids to padded tensors: the only place that pads, marks padding, and shifts the target by one token.

B sentences, S source tokens, T target tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .tokenizer import BOS, EOS, PAD

Ids = list[int]


@dataclass(frozen=True)
class Batch:
    """What one training step reads."""

    src: Tensor  # (B, S) ids ending with EOS
    src_mask: Tensor  # (B, S) True = may look
    tgt_in: Tensor  # (B, T) starts with BOS
    tgt_out: Tensor  # (B, T) ends with EOS
    tokens: int  # target tokens that are not padding


def make_batch(pairs: Sequence[tuple[Ids, Ids]]) -> Batch:
    """Pairs of source and target ids, without special ids, side by side."""
    src, src_mask = pad_sources([source for source, _ in pairs])
    tgt_in = _pad([[BOS, *target] for _, target in pairs])
    tgt_out = _pad([[*target, EOS] for _, target in pairs])
    return Batch(src, src_mask, tgt_in, tgt_out, tokens=sum(len(target) + 1 for _, target in pairs))


def pad_sources(sources: Sequence[Ids]) -> tuple[Tensor, Tensor]:
    """Source ids (B, S), EOS added, and their mask."""
    src = _pad([[*source, EOS] for source in sources])
    lengths = torch.tensor([len(source) + 1 for source in sources])
    return src, torch.arange(src.shape[1]) < lengths[:, None]


def _pad(rows: Sequence[Ids]) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)
