"""Sources that are numbers: steps in time or space, each of so many features; and how they are scaled.

No numpy before it is needed, to start fast.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np

Source: TypeAlias = "list[int] | np.ndarray"  # ids, or (steps, features) in float32


@dataclass(frozen=True)
class FeatureScale:
    """Mean and standard deviation of each feature over the training data; a model is used as it was trained."""

    mean: list[float]
    deviation: list[float]

    def __post_init__(self) -> None:
        if not self.mean or len(self.mean) != len(self.deviation):
            found = f"{len(self.mean)} means and {len(self.deviation)} deviations"
            raise ValueError(f"found {found}; expected as many of both, and at least one")
        if not all(map(math.isfinite, self.mean)) or not all(0 < value < math.inf for value in self.deviation):
            raise ValueError("found means or deviations that are no numbers; expected deviations of more than 0")

    @property
    def features(self) -> int:
        return len(self.mean)

    def apply(self, raw: "np.ndarray") -> "np.ndarray":
        """(steps, features) of mean 0 and deviation 1, in float32."""
        import numpy as np

        if raw.ndim != 2 or raw.shape[1] != self.features:
            raise ValueError(f"found numbers of shape {raw.shape}; expected steps of {self.features} features")
        mean, deviation = np.asarray(self.mean, np.float32), np.asarray(self.deviation, np.float32)
        return (raw.astype(np.float32) - mean) / deviation


class Moments:
    """Mean and deviation of what is seen bit by bit."""

    def __init__(self) -> None:
        self.steps = 0
        self._sum: np.ndarray | float = 0.0
        self._squares: np.ndarray | float = 0.0
        self._shift: np.ndarray | float | None = None  # the first step: far from it squares would lose their digits

    def add(self, frames: "np.ndarray") -> None:
        if self._shift is None:
            self._shift = frames[0].astype(float)
        moved = frames.astype(float) - self._shift
        self.steps += len(frames)
        self._sum = self._sum + moved.sum(axis=0)
        self._squares = self._squares + (moved**2).sum(axis=0)

    def scale(self) -> FeatureScale:
        """A feature that never changes is left as large as it is."""
        import numpy as np

        assert self._shift is not None
        mean = np.asarray(self._sum) / self.steps
        variance = np.maximum(np.asarray(self._squares) / self.steps - mean**2, 0.0)
        deviation = np.sqrt(variance)
        deviation[deviation < 1e-8 * (1 + abs(mean + self._shift))] = 1.0
        return FeatureScale((mean + self._shift).tolist(), deviation.tolist())
