"""How much of the phrases that a target must contain has been written; without torch.

A text can often be read in several ways: after `a a`, the phrase `a a b` may be two words old, or `a b` one. So all
readings are followed at once, as an automaton follows all its states; what is true of the best one is true.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clearhead.data.tokenizer import UNK

Ids = tuple[int, ...]


class Reading(NamedTuple):
    """One way to see which words of a text belong to which phrase; no word belongs to two."""

    met: Ids  # how often each phrase is complete
    phrase: int  # the one being written, or NONE
    rest: Ids  # what is to follow of it


Readings = frozenset[Reading]
NONE = -1


class Phrases:
    """The phrases of one sentence; one that is demanded twice must be there twice."""

    def __init__(self, phrases: Sequence[Sequence[Sequence[int]]]) -> None:
        counts = Counter(tuple(sorted({tuple(way) for way in phrase})) for phrase in phrases)
        for ways in counts:
            if not ways or not all(ways) or min(min(way) for way in ways) < UNK:
                raise ValueError(
                    f"a phrase is {[list(way) for way in ways]}; "
                    f"expected one or more ways to write it, each of one or more ids from {UNK} on"
                )
        self.count = len(phrases)
        self._ways = list(counts)
        self._demanded = tuple(counts.values())
        self._shortest = [min(len(way) for way in ways) for ways in self._ways]
        self._words = {word for ways in self._ways for way in ways for word in way}
        self._known: dict[tuple[Readings, int], Readings] = {}
        self.start = frozenset([Reading((0,) * len(self._ways), NONE, ())])

    def advance(self, readings: Readings, word: int) -> Readings:
        """How the text reads after one more word."""
        if word not in self._words:
            return frozenset(reading for reading in readings if reading.phrase == NONE)
        key = readings, word
        if key not in self._known:
            self._known[key] = _best(after for reading in readings for after in self._after(reading, word))
        return self._known[key]

    def missing(self, readings: Readings) -> int:
        """How many words it takes at least until all phrases are complete."""
        return min(self._missing(reading) for reading in readings)

    def next_words(self, readings: Readings) -> set[int]:
        """Those that begin a phrase or go on with one."""
        begin = {way[0] for reading in readings if reading.phrase == NONE for _, way in self._unmet(reading)}
        return begin | {reading.rest[0] for reading in readings if reading.phrase != NONE}

    def _after(self, reading: Reading, word: int) -> Iterable[Reading]:
        met, phrase, rest = reading
        if phrase != NONE:
            if rest[0] == word:
                yield _reading(met, phrase, rest[1:])
            return
        yield reading
        for phrase, way in self._unmet(reading):
            if way[0] == word:
                yield _reading(met, phrase, way[1:])

    def _unmet(self, reading: Reading) -> Iterable[tuple[int, Ids]]:
        for phrase, ways in enumerate(self._ways):
            if reading.met[phrase] < self._demanded[phrase]:
                for way in ways:
                    yield phrase, way

    def _missing(self, reading: Reading) -> int:
        unmet = [demanded - met for demanded, met in zip(self._demanded, reading.met, strict=True)]
        total = sum(count * shortest for count, shortest in zip(unmet, self._shortest, strict=True))
        if reading.phrase == NONE:
            return total
        return total - self._shortest[reading.phrase] + len(reading.rest)


def _reading(met: Ids, phrase: int, rest: Ids) -> Reading:
    if rest:
        return Reading(met, phrase, rest)
    return Reading((*met[:phrase], met[phrase] + 1, *met[phrase + 1 :]), NONE, ())


def _best(readings: Iterable[Reading]) -> Readings:
    """Without those than which another one has met as much or more, and is otherwise the same."""
    different = set(readings)
    return frozenset(
        reading for reading in different if not any(_is_better(other, reading) for other in different - {reading})
    )


def _is_better(other: Reading, reading: Reading) -> bool:
    same_place = other[1:] == reading[1:]
    return same_place and all(more >= less for more, less in zip(other.met, reading.met, strict=True))
