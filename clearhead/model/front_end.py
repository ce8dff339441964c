"""How a source enters a model: ids by a table of embeddings, arrays of numbers by convolutions that shorten them.

A front end gives vectors, and the mask that belongs to them: where steps are joined there are fewer than came in.

B sentences, S steps of the source, S' of them that are left, F features of a step, D model width.
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .checks import check_features, check_source
from .linear import Linear
from .options import ModelOptions

WINDOW = 3  # steps that a convolution joins


class FrontEnd(Protocol):
    """What both models ask of it."""

    def check(self, src: Tensor, src_mask: Tensor) -> None:
        """Raise ValueError unless this can be read."""
        ...

    def read(self, src: Tensor, src_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors (B, S', D), without positions, and their mask (B, S')."""
        ...


class IdEmbedding(nn.Embedding):
    """Ids (B, S): a vector for each word (paper 3.4), times `scale`."""

    def __init__(self, vocabulary: int, width: int, scale: float = 1.0) -> None:
        super().__init__(vocabulary, width)
        self.scale = scale

    def check(self, src: Tensor, src_mask: Tensor) -> None:
        check_source(src, src_mask, self.num_embeddings)

    def read(self, src: Tensor, src_mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self(src)
        return x if self.scale == 1 else x * self.scale, src_mask


class FeatureEmbedding(nn.Module):
    """Numbers (B, S, F): convolutions, each of which halves the steps, then one matrix; with none of them that alone.

    They are not scaled: numbers of variance 1 come out about as large as the sinusoids that are added to them.
    """

    def __init__(self, features: int, strides: int, width: int) -> None:
        super().__init__()
        self.features = features
        self.convolutions = nn.ModuleList(
            Linear(WINDOW * (width if i else features), width) for i in range(strides)
        )  # as matrices: the products are then those of every other layer
        self.projection = Linear(width if strides else features, width)

    def check(self, src: Tensor, src_mask: Tensor) -> None:
        check_features(src, src_mask, self.features)

    def read(self, src: Tensor, src_mask: Tensor) -> tuple[Tensor, Tensor]:
        x, mask = src, src_mask
        for convolution in self.convolutions:
            # Padding must be as nothing before every convolution: a window at the end reaches into it.
            x = F.gelu(convolution(_windows(x * mask[:, :, None])))
            mask = mask[:, ::2]
        return self.projection(x).to(src.dtype), mask  # (B, S', D), (B, S')


def _windows(x: Tensor) -> Tensor:
    """Every second step with its neighbours on both sides, nothing beyond the ends: (B, S, F) -> (B, ⌈S/2⌉, 3F)."""
    S = x.shape[1]
    padded = F.pad(x, (0, 0, 1, 1 + S % 2))
    before, itself, after = (padded[:, start : start + S + S % 2 : 2] for start in range(WINDOW))
    return torch.cat([before, itself, after], dim=-1)


def make_front_end(options: ModelOptions, scale: float = 1.0) -> IdEmbedding | FeatureEmbedding:
    """The one that the options ask for; `scale` is that of embeddings."""
    if options.features is None:
        return IdEmbedding(options.source_vocabulary, options.width, scale)
    return FeatureEmbedding(options.features, options.strides, options.width)
