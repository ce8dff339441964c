"""What is to be done with one text: which parts the model is asked for, which stay, and what comes out of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from unicodedata import normalize

from . import guards
from .splitting import Part, around, join, lines, shorten
from .translation import Decoded, Translation


@dataclass(frozen=True)
class Said:
    """One way to say a part."""

    text: str
    score: float
    decoded: Decoded


@dataclass(eq=False)
class Piece:
    """A part of a text. The model is asked for it unless it stays as it is; `said` is best first."""

    part: Part
    stays: bool
    said: list[Said] = field(default_factory=list)
    first_try: list[Said] = field(default_factory=list)  # if this is the second
    is_first: bool = False  # of the pieces that the model is asked for

    @property
    def is_open(self) -> bool:
        return not self.stays and not self.said


class Plan:
    """The pieces of one text, and the warnings so far."""

    def __init__(self, text: str, fits: Callable[[str], bool]) -> None:
        self.source, self.warnings = text, set[str]()
        if not text.isprintable():  # seldom
            self.source = guards.without_controls(text)
            if self.source != text:
                self.warnings.add("control_characters")
            if guards.BIDI.search(text):
                self.warnings.add("bidi_controls")
        self.pieces = _pieces(normalize("NFC", self.source), fits)
        _mark_first(self.pieces)
        if len(self.pieces) > 1 and len([piece for piece in self.pieces if piece.part.text]) > 1 and self.asks:
            self.warnings.add("split")

    @property
    def asks(self) -> bool:
        return any(not piece.stays for piece in self.pieces)

    @property
    def is_open(self) -> bool:
        return any(piece.is_open for piece in self.pieces)

    def keep_apart(self, piece: Piece, words: list[str], fits: Callable[[str], bool]) -> list[Piece]:
        """Replace a piece by what stands around these words, and the words; the new pieces."""
        new: list[Piece] = []
        for part, is_word in around(piece.part.text, words):
            new += [Piece(Part(part.text, ""), stays=True)] if is_word else _pieces(part.text, fits)
            new[-1].part = Part(new[-1].part.text, part.gap)
        new[-1].part = Part(new[-1].part.text, piece.part.gap)
        if piece.is_first:
            _mark_first(new)
        place = self.pieces.index(piece)
        self.pieces[place : place + 1] = new
        self.warnings.add("protected")
        return new

    def result(self, confidence_of: Callable[[Sequence[Said]], float | None]) -> list[Translation]:
        """The translations, best first: of n ways to say each piece, the k-th of all together."""
        if not self.asks:
            if not guards.is_blank(self.source):
                self.warnings.add("copied")
            return [Translation(self.source, 0.0, None, self._ordered())]
        ways = max(len(piece.said) for piece in self.pieces)
        best, *others = [self._way(k) for k in range(ways)]
        if not guards.numbers_kept(self.source, best[0], digits=2):
            self.warnings.add("number_changed")
        return [
            Translation(text, _mean(said), confidence_of(said), self._ordered(), tuple(one.decoded for one in said))
            for text, said in (best, *others)
        ]

    def _way(self, k: int) -> tuple[str, list[Said]]:
        if len(self.pieces) == 1:  # as nearly always
            (piece,) = self.pieces
            return piece.said[k].text + piece.part.gap, [piece.said[k]]
        said = [piece.said[min(k, len(piece.said) - 1)] if piece.said else None for piece in self.pieces]
        texts = [one.text if one else piece.part.text for one, piece in zip(said, self.pieces, strict=True)]
        return join([piece.part for piece in self.pieces], texts), [one for one in said if one]

    def _ordered(self) -> tuple[str, ...]:
        return tuple(word for word in guards.WARNINGS if word in self.warnings) if self.warnings else ()


def _pieces(text: str, fits: Callable[[str], bool]) -> list[Piece]:
    pieces = []
    for line in lines(text):
        if not _says_something(line.text):
            pieces.append(Piece(line, stays=True))
            continue
        *parts, last = shorten(line.text, fits)
        pieces += [Piece(part, stays=not _says_something(part.text)) for part in parts]
        pieces.append(Piece(Part(last.text, line.gap), stays=bool(parts) and not _says_something(last.text)))
    return pieces


def _mark_first(pieces: Sequence[Piece]) -> None:
    for piece in pieces:
        if not piece.stays:
            piece.is_first = True
            return


def _says_something(text: str) -> bool:
    return guards.has_letters(text) or guards.has_digits(text)


def _mean(said: Sequence[Said]) -> float:
    """Of all tokens, EOS counted."""
    if len(said) == 1:
        return said[0].score
    sizes = [len(one.decoded.target) + 1 for one in said]
    return sum(one.score * size for one, size in zip(said, sizes, strict=True)) / sum(sizes)
