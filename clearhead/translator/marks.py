"""What must come out unchanged, exactly once: each such stretch is a mark while the model reads and writes.

Training has shown the model sentences in which a mark stands for a word on both sides (data/marking), so it carries a
mark to where its translation belongs. Addresses, emoji and code are marked at once, figures and the glossary's terms
where the model got them wrong; whoever has something else that must stay gives its spans.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clearhead.data.tokenizer import MARKS

PICTURE = "\u203c\u2049\u231a-\u23ff\u25aa-\u25fe\u2600-\u27bf\u2934\u2935\u2b00-\u2bff\U0001f000-\U0001faff"
TINT = "[\ufe0f\U0001f3fb-\U0001f3ff\u20e3]|[\U000e0020-\U000e007f]"
EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}"  # flags
    "|[0-9#*]\ufe0f?\u20e3"  # keycaps
    f"|[{PICTURE}](?:{TINT})*(?:\u200d[{PICTURE}](?:{TINT})*)*"
)
STOPS = r"\s<>\"'，。；！？、（）【】《》"  # what no address has in it
URL = rf"(?:https?|ftp)://(?:[^{STOPS}()]|\([^{STOPS}()]*\))*(?:[^{STOPS}.,;:!?()\]]|\([^{STOPS}()]*\))"
PATH = rf"/(?:[^{STOPS}()]|\([^{STOPS}()]*\))*(?:[^{STOPS}.,;:!?()\]]|\([^{STOPS}()]*\))"
WWW = rf"\bwww\.[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?:{PATH})?"
MAIL = r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
ADDRESS = re.compile(f"{URL}|{WWW}|{MAIL}")
PROTECTED = re.compile(f"{URL}|{WWW}|{MAIL}|(?:{EMOJI})+")
CODE = (
    r"`[^`\s][^`\n]*`"
    r"|(?<![\w/])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)+/?"  # paths
    r"|\b[A-Za-z]:\\[\w.\\-]+"
    r"|(?<!\S)--?[A-Za-z][\w-]*(?:=\S+)?(?=\s|$)"  # options of a command
    r"|\b[A-Za-z_]\w*(?:\.\w+)*\(\)"
    r"|\b[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+\b"
    r"|(?<![\w&])[#@][A-Za-z_]\w+"
    r"|\b\d+(?:\.\d+){2,}\b"  # versions and addresses of machines
    r"|(?<![\w+.-])(?:\+\d[\d -]{5,}\d|\d{3,}-\d{3,}(?:-\d+)*|0\d+[-/ ]\d{4,})(?![\w-])"  # telephones
)
EVERY_MARK = f"[{MARKS[0]}-{MARKS[-1]}]"
LETTER = r"[^\W\d_\u0e00-\u0eff\u2e80-\uffff]"  # of a script with spaces
GLUED = re.compile(f"(?<={LETTER})(?={EVERY_MARK})|(?<={EVERY_MARK})(?={LETTER})")
BRACKETS = {"(": ")", "[": "]", "（": "）", "“": "”", "«": "»"}
STAYS = re.compile(f"{URL}|{WWW}|{MAIL}|(?:{EMOJI})+|{CODE}|{EVERY_MARK}")
MAY_STAY = re.compile(
    f"[@#`/\\\\_(:{MARKS[0]}-{MARKS[-1]}]|www\\.|(?:^|\\s)-|\\d\\.\\d+\\.|[^\\x00-\\u2000\\u3000-\\uffff]"
)


@dataclass(frozen=True)
class Span:
    """A stretch of a source, and what is to stand for it in the target."""

    start: int
    end: int
    target: str


@dataclass(frozen=True)
class Masked:
    """A source with marks in it, and what each of them stands for in the target, in their order."""

    text: str
    targets: tuple[str, ...] = ()

    def restored(self, target: str) -> str:
        """Every mark replaced by what it stands for, and not glued to a word; one that stands for nothing goes."""
        if not self.targets and target.isascii():
            return target
        found = dict(zip(MARKS, self.targets, strict=False))
        target = GLUED.sub(lambda place: " " if place.start() else "", target) if self.targets else target
        return re.sub(EVERY_MARK, lambda mark: found.get(mark[0], ""), target)

    def wrong(self, target: str) -> int:
        """How many marks do not come exactly once, or should not be there."""
        if not self.targets and target.isascii():
            return 0
        return sum(target.count(mark) != (place < len(self.targets)) for place, mark in enumerate(MARKS))


def spans(text: str) -> list[Span]:
    """Addresses, emoji, code, and marks that somebody wrote."""
    if not MAY_STAY.search(text):  # as mostly
        return []
    return [_with_brackets(text, *match.span()) for match in STAYS.finditer(text)]


def _with_brackets(text: str, start: int, end: int) -> Span:
    """What stands alone in brackets stays in them: a model that has seen few loses them."""
    if start and BRACKETS.get(text[start - 1]) == text[end : end + 1]:
        start, end = start - 1, end + 1
    return Span(start, end, text[start:end])


def masked(text: str, wanted: Iterable[Span]) -> Masked:
    """With a mark for each span; those that overlap one before them are left out. There must be enough marks."""
    parts, targets, place = [], list[str](), 0
    for span in sorted(wanted, key=lambda span: span.start):
        if span.start >= place:
            parts += [text[place : span.start], MARKS[len(targets)]]
            targets.append(span.target)
            place = span.end
    return Masked("".join([*parts, text[place:]]), tuple(targets))


def without(text: str) -> str:
    """A text in which no mark is left."""
    return text if text.isascii() else re.sub(EVERY_MARK, " ", text)


def places_to_cut(found: Sequence[Span]) -> list[int]:
    """Where a text with more spans than there are marks has to be cut."""
    return [found[place].start for place in range(len(MARKS), len(found), len(MARKS))]
