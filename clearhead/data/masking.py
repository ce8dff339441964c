"""SpecAugment (Park et al. 2019): stretches of time and bands of features that a model must do without in training.

What is hidden gets the mean of all, which is 0 in scaled features. Their time warping is left out, as it is in most
recipes that follow them: it costs most and brings least.
"""

import numpy as np

from .features import Source
from .options import DataOptions

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


def _stretch(length: int, longest: int, rng: np.random.Generator) -> tuple[int, int]:
    """A part of so many places, each length up to the longest as likely as any, and each place."""
    size = int(rng.integers(0, longest + 1))
    start = int(rng.integers(0, length - size + 1))
    return start, start + size
