"""Where sentences end in a text without marks, by what training has seen at the ends and beginnings of its lines."""

import math
import re
from dataclasses import dataclass
from itertools import pairwise

from clearhead.data.lines import Lines
from clearhead.data.seen import Seen
from clearhead.data.tokenizer import EOS, Tokenizer

from .casing import as_sentence

WORD = re.compile(r"\S+")
FEWEST_WORDS = 2  # in a sentence
NEVER = -2.0  # the logarithm, to base 2, of how often what was never seen is seen
FINAL_MARK = "."


@dataclass(frozen=True)
class Boundaries:
    """Cuts a text between words where the end of a training line and the beginning of another are likelier."""

    seen: Seen
    tokenizer: Tokenizer
    lines: Lines

    def cut(self, text: str) -> list[tuple[int, int]]:
        """Where each sentence but the last ends and the next begins."""
        known = as_sentence(text, self.tokenizer) if text.islower() else text
        words = list(WORD.finditer(known if len(known) == len(text) else text))
        gains = [self._gain(left[0], right[0]) for left, right in pairwise(words)]
        # The best sum of gains, no sentence having fewer words than a sentence has.
        best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())] * min(len(gains) + 1, FEWEST_WORDS)
        for place in range(len(best), len(gains) + 1):
            before, cuts = best[place - FEWEST_WORDS]
            cut = before + gains[place - 1], (*cuts, place - 1)
            fits = len(words) - place >= FEWEST_WORDS
            best.append(max(best[-1], cut) if fits else best[-1])
        return [(words[place].end(), words[place + 1].start()) for place in (best[-1][1] if best else ())]

    def _gain(self, left: str, right: str) -> float:
        """The logarithm of how much likelier it is that a sentence ends between these words than that it goes on."""
        encode = self.tokenizer.encode
        (*_, last), (first, *_) = encode(left), encode(right)
        (*_, end), (begin, *_) = encode(left + FINAL_MARK), encode(right[:1].upper() + right[1:])
        apart = self._often(last, end) + self._often(EOS, begin) - math.log2(self.lines.count)
        return apart - self._often(last, first)

    def _often(self, left: int, right: int) -> float:
        magnitude = self.seen.magnitude(left, right)
        return magnitude - 0.5 if magnitude else NEVER
