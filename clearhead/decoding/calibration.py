"""What a model's scores mean, learned from its own validation pairs; without torch."""

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Calibration:
    """A score is a hypothesis's, from search with the model's own length penalty; lengths are tokens without EOS."""

    scores: list[float]  # rising; between two of them the confidence is on the straight line
    confidences: list[float]  # at each: the chrF, from 0 to 1, that translations of this score had
    low: float  # one of a hundred validation pairs scores less
    length_factor: float  # hardly any target is longer than factor · its source + offset
    length_offset: float

    def __post_init__(self) -> None:
        if not self.scores or len(self.scores) != len(self.confidences):
            found = f"{len(self.scores)} scores and {len(self.confidences)} confidences"
            raise ValueError(f"found {found}; expected as many of both, and at least one")
        if not all(before < after for before, after in pairwise(self.scores)):
            raise ValueError(f"scores are {self.scores}; expected each to be more than the one before")
        if not all(before <= after for before, after in pairwise([0.0, *self.confidences, 1.0])):
            raise ValueError(f"confidences are {self.confidences}; expected them to rise, from 0 to 1 at most")
        numbers = [*self.scores, self.low, self.length_factor, self.length_offset]
        if not all(math.isfinite(number) for number in numbers):
            raise ValueError(f"found {', '.join(map(str, numbers))}; expected finite numbers")
        for name in ("length_factor", "length_offset"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 0")

    def confidence(self, score: float) -> float:
        """How good a translation of this score is expected to be, from 0 to 1."""
        after = bisect_right(self.scores, score)
        if after in (0, len(self.scores)):
            return self.confidences[max(0, after - 1)]
        (left, right), (low, high) = self.scores[after - 1 : after + 1], self.confidences[after - 1 : after + 1]
        return low + (high - low) * (score - left) / (right - left)

    def is_low(self, score: float) -> bool:
        """Whether hardly any validation pair scored so little."""
        return score < self.low

    def longest(self, source_tokens: int) -> int:
        """Tokens that the target of such a source may have; more look like a search that runs in circles."""
        return max(1, math.ceil(self.length_factor * source_tokens + self.length_offset))
