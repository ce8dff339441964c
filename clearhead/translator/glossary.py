"""Terminology: a source phrase, a tab, and the target phrase that a translation of it has to have; one a line."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from clearhead.data.tokenizer import SPACE, UNK, Tokenizer
from clearhead.errors import BAD_DATA, UserError

from .reading import chunked, file_blocks, raw_lines
from .splitting import UNSPACED

KEY = 2  # characters by which entries are found


@dataclass(frozen=True)
class Entry:
    source: str
    target: str


class Glossary:
    """Finds the entries that a text calls for."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = [Entry(normalize("NFC", entry.source), normalize("NFC", entry.target)) for entry in entries]
        self._by_start: dict[str, list[Entry]] = {}
        for entry in sorted(self.entries, key=lambda entry: -len(entry.source)):  # the longest match counts
            self._by_start.setdefault(entry.source[:KEY].lower(), []).append(entry)

    def found(self, text: str) -> list[Entry]:
        """Each once, in the text's order; where phrases overlap, the longer one."""
        return list(dict.fromkeys(self._matches(normalize("NFC", text))))

    def phrases(self, text: str, tokenizer: Tokenizer) -> list[list[list[int]]]:
        """What a translation has to contain, each in the ways in which the tokenizer can write it."""
        ways = [ways_to_write(entry.target, tokenizer) for entry in self.found(text)]
        return [way for way in ways if way]

    def misses(self, source: str, target: str) -> bool:
        """Whether the target lacks a phrase that the source calls for."""
        there = normalize("NFC", target)
        return any(entry.target not in there for entry in self.found(source))

    def _matches(self, text: str) -> Iterator[Entry]:
        place = 0
        while place < len(text):
            entry = self._match(text, place)
            if entry is not None:
                yield entry
            place += len(entry.source) if entry else 1

    def _match(self, text: str, place: int) -> Entry | None:
        """With the same capitals if there is one, else without regard to them."""
        starts = (text[place : place + KEY].lower(), text[place : place + 1].lower())
        near = [entry for start in dict.fromkeys(starts) for entry in self._by_start.get(start, [])]
        near = [entry for entry in near if _is_whole(text, place, place + len(entry.source))]
        exact = (entry for entry in near if text.startswith(entry.source, place))
        alike = (e for e in near if text[place : place + len(e.source)].lower() == e.source.lower())
        return next(exact, None) or next(alike, None)


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


def _is_whole(text: str, start: int, end: int) -> bool:
    """No letter or digit goes on at either side, unless it is of a script that has no spaces."""
    return not (_goes_on(text[start - 1 : start + 1] if start else "") or _goes_on(text[end - 1 : end + 1]))


def _goes_on(two: str) -> bool:
    return len(two) == 2 and all(c.isalnum() and not UNSPACED.match(c) for c in two)
