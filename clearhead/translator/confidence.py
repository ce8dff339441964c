"""How sure the model is of a translation, and whether that is little: one number decides both."""

from collections.abc import Sequence
from typing import Protocol

from clearhead.data.seen import Seen
from clearhead.decoding.calibration import Calibration

from .translation import Decoded


class Part(Protocol):
    """One way to say a part of a text."""

    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def decoded(self) -> Decoded: ...


class Confidence:
    """Of a text's translation it is that of its least sure part; none if it cannot be known."""

    def __init__(self, calibration: Calibration | None, seen: Seen | None = None) -> None:
        """`seen` is what a calibration with `sense` was fitted with; without it nothing is known."""
        self.calibration = None if calibration is not None and calibration.sense and seen is None else calibration
        self.seen = seen

    def __call__(self, said: Sequence[Part]) -> float | None:
        if self.calibration is None:
            return None
        return min(self._of(part, self.calibration) for part in said)

    def is_low(self, part: Part) -> bool:
        """Whether a part is to be warned of. Old models have no threshold of confidence, but one of the score."""
        if self.calibration is None:
            return False
        if not self.calibration.sense:
            return self.calibration.is_low(part.score)
        return self._of(part, self.calibration) < self.calibration.low_confidence

    def _of(self, part: Part, calibration: Calibration) -> float:
        if not calibration.sense or self.seen is None:
            return calibration.confidence(part.score)
        return calibration.confidence(part.score, self.seen.familiarity(part.decoded.source), len(part.text))
