"""What a model must do without in training: words of a text, stretches of time and bands of features of a recording.

Words (Gal & Ghahramani 2016; for translation Sennrich et al. 2016): each one that is read, in the source and in the
target so far, may be an unknown one; what is to be said stays as it is.

Stretches and bands (SpecAugment, Park et al. 2019): what is hidden gets the mean of all, which is 0 in scaled features.
Their time warping is left out, as it is in most recipes that follow them: it costs most and brings least.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from .batching import Batch
from .features import Source
from .options import DataOptions
from .tokenizer import SPECIAL_PIECES, UNK

MOST = 5  # a stretch of time is at most one part in so many of the whole


def hide_parts(features: Source, options: DataOptions, rng: np.random.Generator) -> Source:
    """A copy of (steps, features) with parts of it hidden; none if the options ask for none."""
    if not isinstance(features, np.ndarray) or not (options.time_masks or options.feature_masks):
        return features
    hidden = features.copy()
    steps, count = hidden.shape
    for _ in range(options.time_masks):
        start, end = _stretch(steps, min(options.time_mask_steps, steps // MOST), rng)
        hidden[start:end] = 0
    for _ in range(options.feature_masks):
        start, end = _stretch(count, min(options.feature_mask_width, count - 1), rng)
        hidden[:, start:end] = 0
    return hidden


def hide_words(batch: Batch, rate: float) -> Batch:
    """The same batch with about this share of the words that are read hidden; which ones is up to torch's seed."""
    if not rate:
        return batch
    is_text = not batch.src.is_floating_point()
    return replace(batch, src=_hidden(batch.src, rate) if is_text else batch.src, tgt_in=_hidden(batch.tgt_in, rate))


def _hidden(ids: Tensor, rate: float) -> Tensor:
    is_word = ids >= len(SPECIAL_PIECES)
    return ids.masked_fill((torch.rand(ids.shape) < rate) & is_word, UNK)


def _stretch(length: int, longest: int, rng: np.random.Generator) -> tuple[int, int]:
    """A part of so many places, each length up to the longest as likely as any, and each place."""
    size = int(rng.integers(0, longest + 1))
    start = int(rng.integers(0, length - size + 1))
    return start, start + size
