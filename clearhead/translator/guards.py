"""What a text is made of and whether a translation can be right: pure functions on text and ids.

Faults F31-F34, F36, F37 and F39 of the fault matrix.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from clearhead.data.corpus import CONTROL, SURROGATE
from clearhead.data.tokenizer import BYTE_PIECES, SPACE, SPECIAL_PIECES, UNK
from clearhead.errors import BAD_DATA, UserError

from .casing import UNSPACED
from .marks import ADDRESS, PROTECTED

if TYPE_CHECKING:
    import numpy as np

# Every warning there is, and what it tells; scripts compare with these words.
WARNINGS = {
    "copied": "nothing in it to translate: it stands as it was",
    "split": "a sentence was translated in parts: it is longer than those that the model was trained on",
    "protected": "a sentence was translated in parts: the model would have lost an emoji, address or foreign word",
    "recased": "translated as a sentence, and given back in the capitals of its source",
    "repetition": "the model ran in circles; what stands here was decoded once more with blocked n-grams",
    "left_out": "a part of the source seems not to be in the translation",
    "cut_off": "the translation was ended by its length limit",
    "low_confidence": "the model is less sure than of nearly all its validation pairs",
    "number_changed": "a number of the source is not in the translation, or it has one more",
    "glossary_missed": "a phrase that the glossary asks for is not in the translation",
    "control_characters": "control characters were read as spaces",
    "bidi_controls": "has invisible characters that change the direction of writing",
    "replaced_bytes": "had bytes that are no UTF-8, read as U+FFFD",
}

LETTER = re.compile(r"[^\W\d_]")  # and some that isalpha knows better
FOREIGN = re.compile(r"[^\W\d_\x00-\x7f]+")
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

SPELLED = {SPACE, SPECIAL_PIECES[UNK], *BYTE_PIECES}  # pieces that say nothing of what they stand for

SEEN = 0.4  # attention that a source word must get in all to count as looked at; of references 5 % get less
LETTERS_LEFT_OUT = 9  # in a row that are not; a Chinese character counts as two

GRAM = 4  # F39: a run of so many tokens ...
EXTRA = 4  # ... may come so many times more often than any in the source,
PERIOD = 8  # and no loop of so many tokens at most
LOOP = 16  # may fill so many


def require_unicode(texts: Iterable[str]) -> None:
    """Half a surrogate pair cannot be written as UTF-8: an error that says where it is."""
    for place, text in enumerate(texts):
        if found := SURROGATE.search(text):
            message = f"text {place + 1} has half a surrogate pair, U+{ord(found[0]):04X}, at {found.start()}"
            raise UserError("INVALID_UNICODE", f"{message}; expected Unicode text; decode it anew", BAD_DATA)


def without_controls(text: str) -> str:
    """Spaces instead of control characters; tabs and line ends stay."""
    return UNSEEN.sub(" ", text)


def on_one_line(text: str) -> str:
    """A model that has bytes can say a line end, which must not become one in a file."""
    return CONTROL.sub(" ", text)


def is_blank(text: str) -> bool:
    """White space and what has no width: there is nothing to see."""
    return all(c.isspace() or unicodedata.category(c) == "Cf" for c in text)


def has_letters(text: str) -> bool:
    """Outside of web and mail addresses."""
    if _may_have_address(text):
        text = ADDRESS.sub("", text)
    first = LETTER.search(text)
    return first is not None and (first[0].isalpha() or any(found[0].isalpha() for found in LETTER.finditer(text)))


def has_digits(text: str) -> bool:
    return any(c.isdecimal() for c in PROTECTED.sub("", text))


def says_something(text: str) -> bool:
    """Whether there is something to translate: letters or figures."""
    return has_letters(text) or has_digits(text)


def protected(text: str) -> list[str]:
    """The emoji and addresses in a text, which a translation has to have as well."""
    if text.isascii() and not _may_have_address(text):
        return []
    return PROTECTED.findall(text)


def _may_have_address(text: str) -> bool:
    """Much faster than to look for one, and mostly there is none."""
    return "://" in text or "www." in text or "@" in text


def foreign_words(text: str, pieces: Callable[[str], list[str]]) -> list[str]:
    """Words of which the vocabulary has no letter, so that they are spelled in bytes from end to end, or unknown."""
    return [word for word in FOREIGN.findall(text) if set(pieces(word)) <= SPELLED]


def any_missing(wanted: Sequence[str], text: str) -> bool:
    """Whether the text has one of these less often than it should."""
    if not wanted:  # as nearly always
        return False
    bare = text.replace("\ufe0f", "")  # which only asks for colour
    counts = Counter(word.replace("\ufe0f", "") for word in wanted)
    return any(bare.count(word) < count for word, count in counts.items())


def left_out(pieces: Sequence[str], alignment: "np.ndarray") -> list[tuple[int, int]]:
    """Stretches of the source's tokens that no target token looks at: first and last + 1 of each.

    Single words need no counterpart, as `do` in a question: a stretch is as long as something that is said.
    """
    seen = alignment[:-1, : len(pieces)].sum(axis=0)
    stretches: list[list[int]] = []
    words = _words(pieces)
    for start, end in words:
        has_letters = any(c.isalnum() for piece in pieces[start:end] for c in piece)
        if not has_letters:  # a mark goes with the words around it
            continue
        if seen[start:end].sum() >= SEEN:
            stretches.append([])
        else:
            stretches[-1:] = [[*(stretches[-1] if stretches else []), start, end]]
    found = [(min(stretch), max(stretch)) for stretch in stretches if stretch]
    return [(start, end) for start, end in found if _says_enough(pieces[start:end])]


def _words(pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Runs of pieces that begin with a space; where there are no spaces each piece is a word."""
    has_spaces = any(piece.startswith(SPACE) for piece in pieces[1:])
    starts = [i for i, piece in enumerate(pieces) if not i or not has_spaces or piece.startswith(SPACE)]
    return list(pairwise([*starts, len(pieces)]))


def _says_enough(pieces: Sequence[str]) -> bool:
    letters = sum(2 if UNSPACED.match(c) else 1 for piece in pieces for c in piece if c.isalnum())
    return letters >= LETTERS_LEFT_OUT


def is_repetitive(source: Sequence[int], target: Sequence[int]) -> bool:
    """F39: a 4-gram that comes far more often than any in the source, or a loop that the source does not have."""
    if len(set(target)) == len(target):  # as often
        return False
    grams = _grams(target)
    if len(set(grams)) == len(grams):  # as nearly always; a loop that long has some of them twice
        return False
    return _most_frequent(grams) > _most_frequent(_grams(source)) + EXTRA or (
        _longest_loop(target) >= LOOP > _longest_loop(source)
    )


def _grams(ids: Sequence[int]) -> list[tuple[int, ...]]:
    return list(zip(*(ids[i:] for i in range(GRAM)), strict=False))


def _most_frequent(grams: Sequence[tuple[int, ...]]) -> int:
    return max(Counter(grams).values(), default=0)


def _longest_loop(ids: Sequence[int]) -> int:
    """Tokens that the longest loop fills; zero if nothing comes twice in a row."""
    longest = 0
    for period in range(1, PERIOD + 1):
        run = 0
        for before, here in zip(ids, ids[period:], strict=False):
            run = run + 1 if before == here else 0
            longest = max(longest, run + period if run >= period else 0)
    return longest
