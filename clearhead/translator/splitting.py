"""A text in parts and back again: split where it hurts least, joined with the spacing that the target's script has.

Fault F29 of the fault matrix: an overlong text is never cut off.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# Where a text may be split, the best places first: between sentences, at clause marks, at white space.
SENTENCE = re.compile(
    r"(?<=[.!?…])[\"'”’»)\]]*\s+(?=[^a-zß-ÿ\s])"
    r"|(?<=[。！？；…])(?![。！？；…”’」』）\s])\s*"
    r"|[”’」』）](?<=[。！？；].)\s*"
)
CLAUSE = re.compile(r"(?<=[,;:–—])\s+|(?<=[，、：])")
WORD = re.compile(r"\s+")
# Scripts that are written without spaces between words, and their punctuation.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff]"
)


@dataclass(frozen=True)
class Part:
    """A stretch of a text, and the white space between it and the next."""

    text: str
    gap: str


def lines(text: str) -> list[Part]:
    """Line by line, and white space at both ends of a line set apart, since a model never saw any there."""
    if text and "\n" not in text and not text[0].isspace() and not text[-1].isspace():  # as nearly always
        return [Part(text, "")]
    parts = []
    for line, end in re.findall(r"([^\n]*)(\n?)", text)[:-1] or [("", "")]:
        bare = line.strip()
        start = line.find(bare)
        if start:
            parts.append(Part("", line[:start]))
        parts.append(Part(bare, line[start + len(bare) :] + end))
    return parts


def around(text: str, words: list[str]) -> list[tuple[Part, bool]]:
    """Split before and after each of the words; True for these themselves."""
    pattern = "|".join(re.escape(word) for word in sorted(set(words), key=len, reverse=True))
    parts: list[tuple[Part, bool]] = []
    for place, piece in enumerate(re.split(f"({pattern})", text)):
        bare = piece.strip()
        before, after = piece.split(bare, 1) if bare else (piece, "")
        if parts and before:
            last, is_word = parts[-1]
            parts[-1] = Part(last.text, last.gap + before), is_word
        if bare:
            parts.append((Part(bare, after), place % 2 == 1))
    return parts


def shorten(text: str, fits: Callable[[str], bool]) -> Iterator[Part]:
    """Parts that fit, each split at the best kind of place there is, as near to the middle as possible."""
    if fits(text) or len(text) < 2:
        yield Part(text, "")
        return
    end, start = _best_split(text)
    *first, last = shorten(text[:end], fits)
    yield from first
    yield Part(last.text, text[end:start])
    yield from shorten(text[start:], fits)


def _best_split(text: str) -> tuple[int, int]:
    """Where the first half ends and where the second begins; white space may lie between."""
    middle = len(text) / 2
    for pattern in (SENTENCE, CLAUSE, WORD):
        places = [found.end() for found in pattern.finditer(text) if 0 < found.end() < len(text)]
        if places:
            place = min(places, key=lambda place: abs(place - middle))
            return len(text[:place].rstrip()), place
    place = _between_characters(text)
    return place, place


def _between_characters(text: str) -> int:
    """Near the middle, and not between a letter and its accent if there is another place."""
    middle = len(text) // 2
    places = (place for away in range(middle) for place in (middle - away, middle + away))
    return next((place for place in places if not unicodedata.combining(text[place])), middle)


def join(sources: list[Part], targets: list[str]) -> str:
    """The translations of the parts, with white space between them as both languages have it."""
    joined = targets[0]
    for before, after, target in zip(sources[:-1], sources[1:], targets[1:], strict=True):
        joined += gap_between(before, after.text, joined, target) + target
    return joined + sources[-1].gap


def gap_between(before: Part, after: str, left: str, right: str) -> str:
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
