"""Terminology: a source phrase, a tab, and the target phrase that a translation of it has to have; one a line.

Either side may list more forms behind `|`: `cat|cats` and `Katze|Katzen` stand for each other in this order. An
inflected form that is not listed is found by its stem, and a target in another form of the same stem has the term.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from unicodedata import normalize

from clearhead.data.tokenizer import SPACE, UNK, Tokenizer
from clearhead.errors import BAD_DATA, UserError

from .casing import UNSPACED
from .reading import chunked, file_blocks, raw_lines

KEY = 2  # characters by which entries are found
FORMS = "|"  # between the forms of a phrase
# What an inflected form may have behind the stem, in letters, and how long a stem must be.
LONGEST_ENDING, SHORTEST_STEM = 2, 3
WORDS = re.compile(r"\w+|[^\w\s]")
ENDINGS = {  # of source words that are not listed
    "en": ("s", "es", "'s", "’s"),
    "de": ("e", "en", "n", "er", "ern", "es", "s"),
    "fr": ("s", "x", "es"),
    "es": ("s", "es"),
    "pt": ("s", "es"),
    "nl": ("s", "en", "'s"),
}


@dataclass(frozen=True)
class Entry:
    source: str
    target: str

    @property
    def forms(self) -> list[tuple[str, str]]:
        """Each form of the source with its target; the last target form serves for all that have none."""
        sources, targets = (side.split(FORMS) for side in (self.source, self.target))
        return [(source, targets[min(place, len(targets) - 1)]) for place, source in enumerate(sources)]


@dataclass(frozen=True)
class Term:
    """A phrase of the glossary in a text: where it stands, and what its translation has to have."""

    source: str
    start: int
    end: int
    target: str
    targets: tuple[str, ...]  # all forms

    def is_in(self, translation: str) -> bool:
        """Whether one of its forms is there, perhaps inflected, and not glued to another word."""
        there = normalize("NFC", translation)
        return any(_has_form(there, target) for target in self.targets)


class Glossary:
    """Finds the entries that a text calls for."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = [Entry(normalize("NFC", entry.source), normalize("NFC", entry.target)) for entry in entries]
        self._by_start: dict[str, list[tuple[str, str, Entry]]] = {}
        forms = ((source, target, entry) for entry in self.entries for source, target in entry.forms)
        for form in sorted(forms, key=lambda form: -len(form[0])):  # the longest match counts
            self._by_start.setdefault(form[0][:KEY].lower(), []).append(form)

    def terms(self, text: str, language: str = "") -> list[Term]:
        """Those in a text that is in NFC, in its order; where phrases overlap, the longer one."""
        found: list[Term] = []
        place = 0
        while place < len(text):
            term = self._match(text, place, ENDINGS.get(language.partition("-")[0], ()))
            found += [term] if term else []
            place = term.end if term else place + 1
        return found

    def _match(self, text: str, place: int, endings: Sequence[str]) -> Term | None:
        """With the same capitals if there is one, else without regard to them, else with an ending."""
        if place and _goes_on(text[place - 1 : place + 1]):
            return None
        starts = (text[place : place + KEY].lower(), text[place : place + 1].lower())
        near = [form for start in dict.fromkeys(starts) for form in self._by_start.get(start, [])]
        alike = [form for form in near if text[place : place + len(form[0])].lower() == form[0].lower()]
        exact = [form for form in alike if text.startswith(form[0], place)]
        tries = [(form, "") for form in (*exact, *alike)] + [(form, ending) for form in alike for ending in endings]
        for (source, target, entry), ending in tries:
            end = place + len(source) + len(ending)
            if text[end - len(ending) : end] == ending and not _goes_on(text[end - 1 : end + 1]):
                return Term(text[place:end], place, end, target, tuple(form for _, form in entry.forms))
        return None


def _has_form(text: str, target: str) -> bool:
    """Whether a text has a target phrase as words of their own, each perhaps with another ending."""
    if UNSPACED.search(target):
        return target in text
    words, wanted = WORDS.findall(text), WORDS.findall(target)
    runs = (words[start : start + len(wanted)] for start in range(len(words) - len(wanted) + 1))
    return any(all(map(_is_form, run, wanted)) for run in runs)


def _is_form(word: str, of: str) -> bool:
    """Whether they share a stem, and what differs behind it is no longer than an ending."""
    word, of = word.lower(), of.lower()
    stem = sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(word, of, strict=False)))
    return word == of or (
        stem >= SHORTEST_STEM and len(of) - stem < LONGEST_ENDING and len(word) - stem <= LONGEST_ENDING
    )


def read_glossary(path: Path) -> Glossary:
    """From a file; an error names the line that is wrong."""
    entries = []
    lines = (line for chunk in chunked(raw_lines(file_blocks(path))) for line in chunk.lines)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            message = f"{path} line {number} is {line[:60]!r}; expected a source phrase, a tab and a target phrase"
            raise UserError("GLOSSARY", f"{message}; correct or remove it", BAD_DATA)
        entries.append(Entry(*columns))
    return Glossary(entries)


def ways_to_write(phrase: str, tokenizer: Tokenizer) -> list[list[int]]:
    """As ids, after a space and right after another word; none if the vocabulary lacks a word of it."""
    after_mark = tokenizer.encode(SPACE + phrase)[len(tokenizer.encode(SPACE)) :]  # gets no space from the tokenizer
    ways = [tokenizer.encode(phrase), after_mark]
    good = [ids for ids in ways if ids and UNK not in ids and tokenizer.decode(ids).strip() == phrase]
    return [ids for place, ids in enumerate(good) if ids not in good[:place]]


def _goes_on(two: str) -> bool:
    return len(two) == 2 and all(c.isalnum() and not UNSPACED.match(c) for c in two)
