"""A text in segments, each as long as the lines that the model was trained on, and a text again.

A line is cut between sentences if the training lines were single sentences, a sentence far longer than what was seen
at its clauses, else at white space; joined, it has the spacing of the target's script. Fault F29 of the fault matrix:
an overlong text is never cut off.
"""

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from clearhead.data.lines import Lines
from clearhead.data.sentences import sentences

from .boundaries import Boundaries
from .casing import UNSPACED

# Where a sentence may be split, the best places first: between sentences in it, at clause marks, at white space.
SENTENCE = re.compile(
    r"(?<=[.!?…])[\"'”’»)\]]*\s+(?=[^a-zß-ÿ\s])"
    r"|(?<=[。！？；…])(?![。！？；…”’」』）\s])\s*"
    r"|[”’」』）](?<=[。！？；].)\s*"
)
CLAUSE = re.compile(r"(?<=[,;:–—])\s+|(?<=[，、：])")
WORD = re.compile(r"\s+")


SEVERAL = 0.2  # share of training lines of several sentences above which the model knows what stands side by side
UNUSUAL = 2.0  # times the usual length, from which on a line without marks is taken for several sentences
NARROW = 40  # characters of the longest line below which lines are no paragraph that somebody wrapped
ITEM = re.compile(r"[-*•–—>|#]\s|\(?(?:\d{1,3}|[a-z])[.)]\s")  # how lines begin that stand for themselves
HYPHEN = re.compile(r"(?<=\w)-\n(?=\w)")
ENDS = ".!?…:;。！？：；\"'”’»)"


@dataclass(frozen=True)
class Segment:
    """A stretch of a text that is translated at once, and the white space between it and the next."""

    text: str
    gap: str
    width: int = 0  # of the lines that its paragraph was wrapped to; none: it was not
    is_part: bool = False  # of a sentence that was too long
    is_unmarked: bool = False  # one of several sentences that no mark set apart: their translations have theirs


@dataclass(frozen=True)
class Cutter:
    """How texts are cut for one model."""

    language: str
    tokens: Callable[[str], int]  # how long the model finds a text
    most: int  # tokens that it can read at all
    lines: Lines | None  # what its training lines were; an old model does not say
    boundaries: Boundaries | None = None  # finds sentences where no mark ends them

    def cut(self, text: str) -> list[Segment]:
        """Segments that make up the text."""
        return [segment for line in paragraphs(text) for segment in self._cut_line(line)]

    def shorter(self, text: str) -> list[Segment]:
        """In two or more at the best places there are inside, whatever its length; itself where there are none."""
        parts = self._sentences(text)
        if len(parts) < 2:
            parts = self._unmarked(Segment(text, ""))
        if len(parts) < 2:
            size = len(text)
            halves = shorten(text, lambda some: len(some) < size, at=(SENTENCE, CLAUSE))
            parts = [replace(part, is_part=True) for part in halves]
        return parts if len(parts) > 1 else [Segment(text, "")]

    def _cut_line(self, line: Segment) -> list[Segment]:
        parts = [
            part
            for group in self._groups(line.text)
            for sentence in self._unmarked(group)
            for part in self._fitting(sentence)
        ]
        *first, last = [replace(part, width=line.width) for part in parts]
        return [*first, replace(last, gap=line.gap)]

    def _groups(self, text: str) -> list[Segment]:
        """Sentences, one by one or as many together as the training lines had."""
        parts = self._sentences(text)
        if len(parts) < 2 or self.lines is None or self.lines.several < SEVERAL:
            return parts
        together = parts[:1]
        for part in parts[1:]:
            joined = together[-1].text + together[-1].gap + part.text
            if self.tokens(joined) <= self.lines.long:
                together[-1] = Segment(joined, part.gap)
            else:
                together.append(part)
        return together

    def _sentences(self, text: str) -> list[Segment]:
        parts: list[Segment] = []
        for part in sentences(text, self.language) or [""]:
            bare = part.rstrip()
            if bare or not parts:
                parts.append(Segment(bare, part[len(bare) :]))
            else:
                parts[-1] = replace(parts[-1], gap=parts[-1].gap + part)
        return parts

    def _unmarked(self, segment: Segment) -> list[Segment]:
        """Sentences without a mark between them, where a line is far longer than most and has none inside."""
        text = segment.text
        if self.boundaries is None or self._fits(text, int(UNUSUAL * self.boundaries.lines.median)):
            return [segment]
        if text[-1:] in ENDS or SENTENCE.search(text):
            return [segment]
        parts, start = [], 0
        for end, following in self.boundaries.cut(text):
            parts.append(Segment(text[start:end], text[end:following], segment.width, is_unmarked=True))
            start = following
        return [*parts, replace(segment, text=text[start:], is_unmarked=bool(parts))]

    def _fitting(self, segment: Segment) -> list[Segment]:
        """A sentence longer than any that was seen, in parts of lengths that were seen often."""
        longest = self.most if self.lines is None else min(self.most, max(self.lines.longest, 1))
        if self._fits(segment.text, longest):
            return [segment]
        usual = longest if self.lines is None else min(longest, max(self.lines.long, 1))
        kind = replace(segment, is_part=True)
        parts = [
            replace(kind, text=part.text, gap=part.gap)
            for part in shorten(segment.text, lambda text: self._fits(text, usual))
        ]
        return [*parts[:-1], replace(parts[-1], gap=parts[-1].gap + segment.gap)]

    def _fits(self, text: str, most: int) -> bool:
        """Whether the text has no more tokens; one has at least one byte, and a first space may be counted too."""
        return len(text.encode()) < most or self.tokens(text) <= most


def paragraphs(text: str) -> list[Segment]:
    """Line by line, white space at both ends set apart, since a model never saw any there.

    Lines that somebody wrapped are one line again: each so long that the next word did not fit.
    """
    if text and "\n" not in text and not text[0].isspace() and not text[-1].isspace():  # as nearly always
        return [Segment(text, "")]
    parts: list[Segment] = []
    for block in re.split(r"(\n[^\S\n]*(?=\n))", text):  # an empty line ends a paragraph
        width = _wrapped_to(block)
        if width:
            start = len(block) - len(block.lstrip())
            end = len(block.rstrip())
            parts += [Segment("", block[:start])] if start else []
            one_line = HYPHEN.sub("-", block[start:end])  # a word that was cut where it has a hyphen
            parts.append(Segment(" ".join(one_line.split()), block[end:], width))
        else:
            parts += _lines(block)
    return parts or [Segment("", "")]


def _wrapped_to(block: str) -> int:
    """How wide the lines of a wrapped paragraph are; nothing if it is none."""
    rows = block.strip().split("\n")
    width = max(map(len, rows))
    if len(rows) < 2 or width < NARROW or all(row.rstrip()[-1:] in ENDS for row in rows[:-1]):
        return 0
    for row, following in pairwise(rows):
        first = following.split(None, 1)[:1]
        is_full = bool(first) and len(row) + 1 + len(first[0]) > width
        if not is_full or following[:1].isspace() or ITEM.match(following) or " " not in row.strip():
            return 0
    return width


def _lines(text: str) -> list[Segment]:
    parts = []
    for line, end in re.findall(r"([^\n]*)(\n?)", text)[:-1]:
        bare = line.strip()
        start = line.find(bare)
        if start:
            parts.append(Segment("", line[:start]))
        parts.append(Segment(bare, line[start + len(bare) :] + end))
    return parts


def around(text: str, words: list[str]) -> list[tuple[Segment, bool]]:
    """Split before and after each of the words; True for these themselves."""
    pattern = "|".join(re.escape(word) for word in sorted(set(words), key=len, reverse=True))
    parts: list[tuple[Segment, bool]] = []
    for place, piece in enumerate(re.split(f"({pattern})", text)):
        bare = piece.strip()
        before, after = piece.split(bare, 1) if bare else (piece, "")
        if parts and before:
            last, is_word = parts[-1]
            parts[-1] = Segment(last.text, last.gap + before), is_word
        if bare:
            parts.append((Segment(bare, after), place % 2 == 1))
    return parts


def shorten(
    text: str, fits: Callable[[str], bool], at: Sequence[re.Pattern[str]] = (SENTENCE, CLAUSE, WORD)
) -> Iterator[Segment]:
    """Parts that fit, each split at the best kind of place there is, as near to the middle as possible.

    Where there is no place of the kinds asked for it is split anywhere, unless words are to stay whole.
    """
    if fits(text) or len(text) < 2:
        yield Segment(text, "")
        return
    split = _best_split(text, at)
    if split is None and WORD not in at:
        yield Segment(text, "")
        return
    end, start = split or (_between_characters(text),) * 2
    *first, last = shorten(text[:end], fits, at)
    yield from first
    yield Segment(last.text, text[end:start])
    yield from shorten(text[start:], fits, at)


def _best_split(text: str, at: Sequence[re.Pattern[str]]) -> tuple[int, int] | None:
    """Where the first half ends and where the second begins; white space may lie between."""
    middle = len(text) / 2
    for pattern in at:
        places = [found.end() for found in pattern.finditer(text) if 0 < found.end() < len(text)]
        if places:
            place = min(places, key=lambda place: abs(place - middle))
            return len(text[:place].rstrip()), place
    return None


def _between_characters(text: str) -> int:
    """Near the middle, and not between a letter and its accent if there is another place."""
    middle = len(text) // 2
    places = (place for away in range(middle) for place in (middle - away, middle + away))
    return next((place for place in places if not unicodedata.combining(text[place])), middle)


def join(sources: Sequence[Segment], targets: Sequence[str]) -> str:
    """The translations of the segments, with white space between them as both languages have it."""
    paragraph = targets[0]
    done = ""
    for before, after, target in zip(sources[:-1], sources[1:], targets[1:], strict=True):
        gap = gap_between(before, after.text, paragraph, target)
        if before.width and after.width and "\n" not in before.gap:
            paragraph += gap + target
        else:
            done, paragraph = done + _wrapped(paragraph, before.width) + gap, target
    return done + _wrapped(paragraph, sources[-1].width) + sources[-1].gap


def _wrapped(text: str, width: int) -> str:
    """To lines of this width, as the source was, if it was."""
    if not width:
        return text
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def gap_between(before: Segment, after: str, left: str, right: str) -> str:
    """A line end stays one; Chinese sentences stand side by side, those made of them in English do not."""
    if "\n" in before.gap or not (before.text and left and right):
        return before.gap
    was_unspaced, is_unspaced = _unspaced(before.text, after), _unspaced(left, right)
    if is_unspaced and not was_unspaced:
        return ""
    if was_unspaced and not is_unspaced:
        return before.gap or " "
    return before.gap


def _unspaced(left: str, right: str) -> bool:
    return bool(UNSPACED.match(left[-1:]) or UNSPACED.match(right[:1]))
