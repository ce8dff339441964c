"""Ids and features to padded tensors: the only place that pads, marks padding, and shifts the target by one token.

Which pairs make up a batch, and in which order, is a pure function of the lengths, the token budget, the seed and
the epoch: nothing has to be remembered to resume, and any number of processes sees the same batches.

B sentences, S source tokens or steps, F features of a step, T target tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .aligner import NONE
from .features import Source
from .tokenizer import BOS, EOS, PAD

Ids = list[int]
Parts = list[np.ndarray]
PARTS = 2  # of a batch, each of pairs of other lengths: from one length alone less is learned (benchmarks/LOG.md)
LONG_SOURCES = 4  # times as many steps as target tokens: then it is the sources whose padding counts


@dataclass(frozen=True)
class Batch:
    """What one training step reads."""

    src: Tensor  # (B, S) ids ending with EOS, or (B, S, F) features
    src_mask: Tensor  # (B, S) True = may look
    tgt_in: Tensor  # (B, T) starts with BOS
    tgt_out: Tensor  # (B, T) ends with EOS
    tokens: int  # target tokens that are not padding
    links: Tensor | None = None  # (B, T) the place in src of what each token of tgt_out translates; -1: not known

    def to(self, device: str) -> "Batch":
        """The same on another device; nothing is copied if it is there already."""
        return replace(
            self,
            src=self.src.to(device),
            src_mask=self.src_mask.to(device),
            tgt_in=self.tgt_in.to(device),
            tgt_out=self.tgt_out.to(device),
            links=None if self.links is None else self.links.to(device),
        )


def make_batch(pairs: Sequence[tuple[Source, Ids]], links: Sequence[np.ndarray] | None = None) -> Batch:
    """Pairs of a source, ids or features, and target ids, without special ids, side by side.

    `links` has, for each target id, the place of the source id that it translates, or NONE.
    """
    src, src_mask = pad_sources([source for source, _ in pairs])
    tgt_in = _pad([[BOS, *target] for _, target in pairs])
    tgt_out = _pad([[*target, EOS] for _, target in pairs])
    tokens = sum(len(target) + 1 for _, target in pairs)
    return Batch(src, src_mask, tgt_in, tgt_out, tokens, None if links is None else _pad_links(links))


def pad_sources(sources: Sequence[Source]) -> tuple[Tensor, Tensor]:
    """Source ids (B, S), EOS added, or features (B, S, F), and their mask (B, S)."""
    steps = [torch.from_numpy(source) for source in sources if isinstance(source, np.ndarray)]
    ids = [[*source, EOS] for source in sources if isinstance(source, list)]
    src = pad_sequence(steps, batch_first=True) if steps else _pad(ids)
    lengths = torch.tensor([len(row) for row in steps or ids])
    return src, torch.arange(src.shape[1]) < lengths[:, None]


def _pad(rows: Sequence[Ids]) -> Tensor:
    """(B, longest); in one go: a tensor for each row would take twenty times as long."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    padded = np.full((len(rows), int(lengths.max())), PAD)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.fromiter(chain.from_iterable(rows), np.int64)
    return torch.from_numpy(padded)


def _pad_links(rows: Sequence[np.ndarray]) -> Tensor:
    """(B, longest + 1); EOS translates nothing."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    padded = np.full((len(rows), int(lengths.max()) + 1), -1)
    found = np.concatenate(rows).astype(np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.where(found == NONE, -1, found)
    return torch.from_numpy(padded)


def epoch_batches(
    source_lengths: np.ndarray, target_lengths: np.ndarray, tokens: int, seed: int, epoch: int
) -> list[Parts]:
    """The pairs (their indices) of each batch of an epoch, in parts, in the order in which they are trained on.

    Pairs of the same lengths stand together in a part, so that little is padded; among equals chance decides, and it
    decides which parts make up a batch. A part costs its rows times its longest side, EOS counted, and that is at most
    its share of `tokens` unless a single pair is longer.
    """
    tokens = max(1, tokens // PARTS)
    rng = np.random.default_rng([seed, epoch])
    shuffled = rng.permutation(len(source_lengths))
    keys = source_lengths[shuffled], target_lengths[shuffled]  # the last one counts first
    if source_lengths.sum(dtype=np.int64) > LONG_SOURCES * target_lengths.sum(dtype=np.int64):
        keys = keys[::-1]
    order = shuffled[np.lexsort(keys)]
    longest = np.maximum(source_lengths, target_lengths)[order] + 1
    parts = []
    start = 0
    while start < len(order):
        rows = max(1, tokens // int(longest[start]))  # the most that can fit; fewer do, as later pairs are longer
        ahead = np.maximum.accumulate(longest[start : start + rows])
        costs = ahead * np.arange(1, len(ahead) + 1)
        end = start + max(1, int(np.searchsorted(costs, tokens, side="right")))
        parts.append(order[start:end])
        start = end
    turns = rng.permutation(len(parts))
    return [[parts[turn] for turn in turns[i : i + PARTS]] for i in range(0, len(parts), PARTS)]


def share(batch: Parts, rank: int, processes: int) -> Parts:
    """One process's rows of a batch: of one part, where each part gets as many processes, or else of every part.

    Of a part every n-th row, so that all have the same lengths and all the same work; a part of which it has none is
    left out.
    """
    if processes % len(batch) == 0:
        rank, part = divmod(rank, len(batch))
        batch, processes = [batch[part]], processes // len(batch)
    return [part[rank::processes] for part in batch if rank < len(part)]
