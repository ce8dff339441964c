"""One result: a text, how sure the model is of it, and what happened on the way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Decoded:
    """A part of a text that the model translated, in ids without special ones."""

    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class Translation:
    """One way to say a source. The score is the mean log-probability of its tokens, or as `length_penalty` says.

    `confidence` is from 0 to 1, and only known if the model was calibrated; `warnings` are words of `WARNINGS`, and
    `details` say of some of them what they are about, such as the words that were left out.
    """

    text: str
    score: float
    confidence: float | None = None
    warnings: tuple[str, ...] = ()
    decoded: tuple[Decoded, ...] = field(default=(), repr=False, compare=False)
    details: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def _repr_html_(self) -> str:
        """For notebooks."""
        sure = "" if self.confidence is None else f", confidence {self.confidence:.0%}"
        about = f"score {self.score:.2f}{sure}{''.join(f', {word}' for word in self.warnings)}"
        return f"<p>{escape(self.text)}<br><small>{escape(about)}</small></p>"
