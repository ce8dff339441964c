"""Which of the target's words a search considers: those that some training target has. Without torch.

With one vocabulary for both languages a third of the words may be the source's alone. Training teaches a model not to
say them (their share of label smoothing goes to the others), so leaving them out of every step changes next to nothing
but its time.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from clearhead.data.tokenizer import SPECIALS

RANGES = re.compile(r"(\d{1,9}(-\d{1,9})?( \d{1,9}(-\d{1,9})?)*)?", re.ASCII)


@dataclass(frozen=True)
class TargetWords:
    unsaid: str = ""  # ids in rising order, many in a row as their first and last: "7 11-13"

    def __post_init__(self) -> None:
        if not RANGES.fullmatch(self.unsaid):
            raise ValueError(f"unsaid is {self.unsaid[:40]!r}; expected ids and ranges of ids, as in '7 11-13'")
        before = SPECIALS - 1
        for first, last in self._ranges():
            if not before < first <= last:
                raise ValueError(f"unsaid has {first}-{last} after {before}; expected rising ids from {SPECIALS} on")
            before = last

    @classmethod
    def without(cls, unsaid: Iterable[int]) -> "TargetWords":
        """All but these, which come in rising order."""
        ranges: list[list[int]] = []
        for word in unsaid:
            if ranges and word == ranges[-1][1] + 1:
                ranges[-1][1] = word
            else:
                ranges.append([word, word])
        return cls(" ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges))

    def require(self, vocabulary: int) -> None:
        """ValueError if there are not so many words."""
        ranges = self._ranges()
        if ranges and ranges[-1][1] >= vocabulary:
            raise ValueError(f"target.unsaid ends with {ranges[-1][1]}; expected ids of {vocabulary} words")

    def said(self, vocabulary: int) -> list[int] | None:
        """The others of so many, special tokens among them; none: all."""
        self.require(vocabulary)
        if not self.unsaid:
            return None
        said: list[int] = []
        start = 0
        for first, last in self._ranges():
            said.extend(range(start, first))
            start = last + 1
        return [*said, *range(start, vocabulary)]

    def _ranges(self) -> list[tuple[int, int]]:
        pairs = (part.partition("-") for part in self.unsaid.split())
        return [(int(first), int(last or first)) for first, _, last in pairs]
