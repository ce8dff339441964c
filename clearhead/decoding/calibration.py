"""What a model's scores mean, learned from its own validation pairs, as they are and with noise; without torch."""

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clearhead.data.seen import Familiarity

NONSENSE = 0.03  # the confidence in a translation of what makes no sense
LEAST_SCORE = -1000.0  # lower ones say nothing more
FEATURES = 4  # that tell sense from nonsense: score, unseen, often, length


@dataclass(frozen=True)
class Calibration:
    """A score is a hypothesis's, from search with the model's own length penalty; lengths are tokens without EOS.

    A model that knows which pairs of pieces it has seen has `sense` and `chance` too. Its confidence is a mixture: of
    a source that makes sense, how good a translation of this score is; of any other, next to nothing.
    """

    scores: list[float]  # rising; between two of them the confidence is on the straight line
    confidences: list[float]  # at each: the chrF, from 0 to 1, that translations of this score had, above chance
    low: float  # one of a hundred validation pairs scores less
    length_factor: float  # hardly any target is longer than factor · its source + offset
    length_offset: float
    chance: float = 0.0  # the chrF of a text and an unrelated one, for each unit of the logarithm of its length
    # Of the logit that a source makes sense: for itself, per score, unseen and often (of Familiarity), and length.
    sense: list[float] = field(default_factory=list)
    low_confidence: float = 0.0  # what is warned of; with `sense`, in place of `low`

    def __post_init__(self) -> None:
        if not self.scores or len(self.scores) != len(self.confidences):
            found = f"{len(self.scores)} scores and {len(self.confidences)} confidences"
            raise ValueError(f"found {found}; expected as many of both, and at least one")
        if not all(before < after for before, after in pairwise(self.scores)):
            raise ValueError(f"scores are {self.scores}; expected each to be more than the one before")
        if not all(before <= after for before, after in pairwise([0.0, *self.confidences, 1.0])):
            raise ValueError(f"confidences are {self.confidences}; expected them to rise, from 0 to 1 at most")
        if len(self.sense) not in (0, 1 + FEATURES):
            raise ValueError(f"sense has {len(self.sense)} numbers; expected none or {1 + FEATURES}")
        numbers = [*self.scores, *self.sense, self.low, self.length_factor, self.length_offset]
        if not all(math.isfinite(number) for number in numbers):
            raise ValueError(f"found {', '.join(map(str, numbers))}; expected finite numbers")
        for name in ("length_factor", "length_offset", "chance"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 0")
        if not 0 <= self.low_confidence <= 1:
            raise ValueError(f"low_confidence is {self.low_confidence}; expected a number from 0 to 1")

    def confidence(self, score: float, source: "Familiarity | None" = None, length: int = 0) -> float:
        """How good a translation of this score is expected to be, from 0 to 1.

        A calibration with `sense` needs to know its source and how many characters it has.
        """
        likely = self._curve(score)
        if not self.sense:
            return likely
        assert source is not None
        log_length = math.log1p(length)
        chance = min(1.0, self.chance * log_length)
        likely = max(NONSENSE, chance + (1 - chance) * likely)
        return NONSENSE + (likely - NONSENSE) * self._sense(score, source, log_length)

    def _curve(self, score: float) -> float:
        after = bisect_right(self.scores, score)
        if after in (0, len(self.scores)):
            return self.confidences[max(0, after - 1)]
        (left, right), (low, high) = self.scores[after - 1 : after + 1], self.confidences[after - 1 : after + 1]
        return low + (high - low) * (score - left) / (right - left)

    def _sense(self, score: float, source: "Familiarity", log_length: float) -> float:
        """The probability that the source is a text such as the model was taught to translate."""
        features = (1.0, max(score, LEAST_SCORE), source.unseen, source.often, log_length)
        logit = sum(weight * value for weight, value in zip(self.sense, features, strict=True))
        return (
            1 / (1 + math.exp(-logit)) if logit > 0 else math.exp(max(logit, -700)) / (1 + math.exp(max(logit, -700)))
        )

    def is_low(self, score: float) -> bool:
        """Whether hardly any validation pair scored so little."""
        return score < self.low

    def longest(self, source_tokens: int) -> int:
        """Tokens that the target of such a source may have; more look like a search that runs in circles."""
        return max(1, math.ceil(self.length_factor * source_tokens + self.length_offset))
