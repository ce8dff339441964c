"""Marks in training pairs: words that are aligned one to one are replaced by the same mark on both sides.

So a model learns to put a mark where the translation of its surroundings wants it, and a translator can hide in one
whatever must come out unchanged. Which words of which pairs is a pure function of the seed, the epoch and the row.

S source tokens, T target tokens, V vocabulary.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .aligner import NONE
from .tokenizer import LEARNED, MARKS, SPACE, SPECIALS, Tokenizer, Words

MOST_MARKS = 3  # in one pair
TOKENS_PER_MARK = 5  # short targets get fewer, or nothing would be left to learn from
ALIKE = 30.0  # times as likely as others of their frequency are words that are the same on both sides
AT_A_TIME = 1 << 24  # ids
# What a piece is made of, its space apart. Of scripts without spaces each piece is a word.
BARE, LETTERS, CLOSE, SIGN, OTHER = range(5)
CLOSE_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
APOSTROPHES = "'’"


@dataclass(frozen=True)
class Marked:
    """A pair with marks, and its links (T,)."""

    source: list[int]
    target: list[int]
    links: np.ndarray


@dataclass(frozen=True)
class Word:
    """The places from start to stop in a row of ids."""

    start: int
    stop: int
    kind: int
    is_whole: bool = True  # nothing but space or signs around it


@dataclass(frozen=True)
class Vocabulary:
    """What of a vocabulary decides where words begin, and which of them are replaced."""

    kinds: list[int]
    spaced: list[bool]  # whether a piece begins with a space
    texts: list[str]  # without that space
    rarity: np.ndarray  # (V,)
    marks: list[int]
    space: int | None  # what comes before a mark that follows a space

    @classmethod
    def of(cls, tokenizer: Tokenizer, ids: np.ndarray) -> "Vocabulary":
        """`ids` are all of the corpus; pieces that are rare in it are replaced more often."""
        pieces = tokenizer.pieces(list(range(len(tokenizer))))
        counts = np.zeros(len(pieces), np.int64)
        for start in range(0, len(ids), AT_A_TIME):
            counts += np.bincount(ids[start : start + AT_A_TIME], minlength=len(pieces))
        are_words = isinstance(tokenizer, Words)
        learned = SPECIALS if are_words else LEARNED
        texts = [piece if are_words else piece.removeprefix(SPACE) for piece in pieces]
        kinds = [OTHER if i < learned else _kind(text) for i, text in enumerate(texts)]
        spaced = [are_words or (i >= learned and piece.startswith(SPACE)) for i, piece in enumerate(pieces)]
        *before, mark = tokenizer.encode(f"{MARKS[0]} {MARKS[0]}")
        space = None if before[-1] == mark else before[-1]
        return cls(kinds, spaced, texts, 1 / np.sqrt(counts + 1), tokenizer.marks, space)

    def words(self, ids: Sequence[int]) -> list[Word]:
        """All words of a row, one after the other; runs of pieces that a space, a sign or a close script begins."""
        words: list[Word] = []
        is_open = True  # nothing but signs came since the last space
        for place, i in enumerate(ids):
            kind = self.kinds[i]
            if self.spaced[i] or not words:
                is_open = kind in (BARE, SIGN)
                words.append(Word(place, place + 1, kind))
                continue
            last = words[-1]
            if last.kind == BARE or (kind == last.kind and kind in (LETTERS, OTHER)):
                words[-1] = replace(last, stop=place + 1, kind=kind)
            elif OTHER in (kind, last.kind) and {kind, last.kind} <= {LETTERS, OTHER}:
                words[-1] = replace(last, stop=place + 1, kind=OTHER)
            else:
                hangs_on = kind == LETTERS and last.kind == SIGN and not is_open
                if hangs_on and len(words) > 1 and self.texts[ids[place - 1]] not in APOSTROPHES:
                    words[-2] = replace(words[-2], is_whole=False)
                words.append(Word(place, place + 1, kind, not hangs_on))
            is_open = is_open and kind == SIGN
        return words

    def is_replaceable(self, word: Word) -> bool:
        return word.kind in (LETTERS, CLOSE) and word.is_whole

    def text(self, ids: Sequence[int], word: Word) -> str:
        return "".join(self.texts[i] for i in ids[word.start : word.stop])

    def put(self, ids: Sequence[int], marks: Sequence[tuple[Word, int]]) -> tuple[list[int], np.ndarray]:
        """The row with the words replaced by marks, and where in it what stood at each place is now."""
        row: list[int] = []
        moved = np.zeros(len(ids), np.int64)
        end = 0
        for word, mark in sorted(marks, key=lambda one: one[0].start):
            moved[end : word.start] = np.arange(len(row), len(row) + word.start - end)
            row += ids[end : word.start]
            if self.spaced[ids[word.start]] and self.space is not None:
                row.append(self.space)
            moved[word.start : word.stop] = len(row)
            row.append(self.marks[mark])
            end = word.stop
        moved[end:] = np.arange(len(row), len(row) + len(ids) - end)
        return [*row, *ids[end:]], moved


@dataclass(frozen=True)
class Marking:
    """How pairs of two vocabularies are marked."""

    source: Vocabulary
    target: Vocabulary
    share: float  # of the pairs
    seed: int
    longest: int  # tokens that a side with marks may have

    def marks(self, rows: np.ndarray, epoch: int) -> np.ndarray:
        """How many marks each of the rows gets in this epoch, if it has so many words for them; most get none.

        So many tokens at most each side grows by: a piece that is a whole word gives way to a space and a mark.
        """
        drawn = _uniform(rows, self.seed, epoch)
        return np.where(drawn < self.share, 1 + (drawn * (MOST_MARKS / self.share)).astype(np.int64), 0)

    def mark(self, source: list[int], target: list[int], links: np.ndarray, row: int, epoch: int) -> Marked | None:
        """The pair with as many of its words replaced as `marks` says; none where no words are aligned one to one."""
        pairs = self.one_to_one(source, target, links)
        if not pairs:
            return None
        rng = np.random.default_rng([self.seed, epoch, row])
        weights = np.array([self._weight(source, target, *words) for words in pairs])
        drawn = int(self.marks(np.array([row]), epoch)[0])
        wanted = min(len(pairs), max(drawn, 1), 1 + len(target) // TOKENS_PER_MARK)
        picked = rng.choice(len(pairs), wanted, replace=False, p=weights / weights.sum())
        marks = rng.permutation(len(MARKS))[:wanted].tolist()
        words = [pairs[place] for place in picked.tolist()]
        new_source, to_source = self.source.put(source, [(s, mark) for (s, _), mark in zip(words, marks, strict=True)])
        new_target, to_target = self.target.put(target, [(t, mark) for (_, t), mark in zip(words, marks, strict=True)])
        if max(len(new_source), len(new_target)) > self.longest:
            return None
        linked = np.flatnonzero(links != NONE)
        new_links = np.full(len(new_target), NONE, np.uint16)
        new_links[to_target[linked]] = to_source[links[linked]]
        for s, t in words:  # every piece of a word that is replaced, whether it had a link or not
            new_links[to_target[t.start]] = to_source[s.start]
        return Marked(new_source, new_target, new_links)

    def one_to_one(self, source: list[int], target: list[int], links: np.ndarray) -> list[tuple[Word, Word]]:
        """Words all of whose links are between the two, and which are such that marks may take their place."""
        linked = [(int(i), j) for j, i in enumerate(links.tolist()) if i != NONE]
        sources, targets = self.source.words(source), self.target.words(target)
        of_source, of_target = _numbers(sources, len(source)), _numbers(targets, len(target))
        between = {(of_source[i], of_target[j]) for i, j in linked}
        targets = _joined(targets, {t: s for s, t in between}, between, side=1)
        sources = _joined(sources, dict(between), between, side=0)
        of_source, of_target = _numbers(sources, len(source)), _numbers(targets, len(target))
        between = {(of_source[i], of_target[j]) for i, j in linked}
        seen_source, seen_target = [s for s, _ in between], [t for _, t in between]
        found = []
        for s, t in sorted(between):
            if seen_source.count(s) > 1 or seen_target.count(t) > 1:
                continue
            if self.source.is_replaceable(sources[s]) and self.target.is_replaceable(targets[t]):
                found.append((sources[s], targets[t]))
        return found

    def _weight(self, source: list[int], target: list[int], s: Word, t: Word) -> float:
        rarity = min(
            float(side.rarity[ids[word.start : word.stop]].max())
            for side, ids, word in ((self.source, source, s), (self.target, target, t))
        )
        return rarity * (ALIKE if self.source.text(source, s) == self.target.text(target, t) else 1.0)


def _kind(text: str) -> int:
    if not text:
        return BARE
    if all(map(_is_letter, text)):
        is_close = unicodedata.category(text[0]) == "Lo" and unicodedata.name(text[0], "").startswith(CLOSE_SCRIPTS)
        return CLOSE if is_close else LETTERS
    return OTHER if any(map(_is_letter, text)) or text in MARKS else SIGN


def _is_letter(character: str) -> bool:
    """Letters, figures, and what is written above, below or around them."""
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _numbers(words: Sequence[Word], length: int) -> list[int]:
    """Which word each place belongs to."""
    return [number for number, word in enumerate(words) for _ in range(word.start, word.stop)][:length]


def _joined(words: list[Word], other: dict[int, int], between: set[tuple[int, int]], side: int) -> list[Word]:
    """Neighbours in a script without spaces made one word where all have links to the same word alone."""
    links = [pair[side] for pair in between]
    alone = {number for number in other if links.count(number) == 1}
    joined: list[Word] = words[:1]
    for number, (before, word) in enumerate(pairwise(words), start=1):
        is_one = before.kind == word.kind == CLOSE and {number - 1, number} <= alone
        if is_one and other[number - 1] == other[number]:
            joined[-1] = replace(joined[-1], stop=word.stop)
        else:
            joined.append(word)
    return joined


def _uniform(rows: np.ndarray, seed: int, epoch: int) -> np.ndarray:
    """A number from 0 up to 1 for each row, by the mixing of splitmix64."""
    start = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)
    x = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) / 2.0**64
