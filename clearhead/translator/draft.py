"""A text while it is being translated: what the engine is asked for, and what is made of its answers.

Nothing here asks an engine. `TextDraft` is a text in segments; each `SegmentDraft` begins with one request, judges what
comes back, and may have a second one that is to mend what was wrong. What was found best is what counts, and what is
still wrong with it is said in the warnings.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING
from unicodedata import normalize

from clearhead.data.lines import Lines
from clearhead.data.tokenizer import MARKS, SPACE, Tokenizer
from clearhead.decoding import Hypothesis

from . import casing, guards, marks, numbers
from .casing import UNSPACED
from .glossary import Glossary, Term, ways_to_write
from .marks import Masked, Span
from .segments import Cutter, Segment, around, join
from .translation import Decoded, Translation

if TYPE_CHECKING:
    import numpy as np

    from .confidence import Confidence

FINAL_MARKS = ".。"
FEW_WORDS, FEW_CHARACTERS = 3, 6  # fewer are no sentence; the latter in scripts without spaces
MOST_SEARCHES = 6  # for one segment; each is to mend one thing
SHORT = 6  # tokens; of shorter sources one cannot say how long a target must be
SHORTER = 0.8  # times the least that hardly any training target was shorter than
AS_USUAL, BLOCKED, WIDE = "as usual", "no n-gram twice", "with a wider beam"


@dataclass(frozen=True)
class Rules:
    """What is the same for all texts of a call: the model's languages and tokenizers, and what the user asks for."""

    languages: tuple[str, str]
    source: Tokenizer
    target: Tokenizer
    cutter: Cutter
    confidence: "Confidence"
    lines: Lines | None = None
    aligns: bool = False  # whether the engine says which source words a target word came from
    has_phrases: bool = False  # whether it can search for targets that must have some phrases, wherever
    glossary: Glossary | None = None
    prefix: Sequence[int] = ()  # how the first segment's target begins
    searches_again: bool = True  # samples are taken as they come
    has_own_limit: bool = False  # the user said how long a target may be: what is cut off there is meant to be
    translates_digits: bool = False  # figures alone have a translation, as dates do
    repeats: bool = False  # running in circles is what the model was trained for

    @property
    def has_marks(self) -> bool:
        return bool(self.source.marks and self.target.marks)


@dataclass(frozen=True)
class Request:
    """What an engine is to search for one segment."""

    masked: Masked  # the text as the model reads it
    prefix: tuple[int, ...] = ()
    phrases: tuple[tuple[tuple[int, ...], ...], ...] = ()  # that the target must have; of an engine that does not align
    way: str = AS_USUAL


@dataclass(frozen=True)
class Faults:
    """What is wrong with a target, as far as one can see without knowing better."""

    marks: int = 0
    lost: tuple[numbers.Figure, ...] = ()  # figures of the source that it has not
    made_up: tuple[numbers.Figure, ...] = ()
    terms: tuple[Term, ...] = ()  # of the glossary, that it has not
    left_out: tuple[str, ...] = ()
    is_cut: bool = False
    runs_in_circles: bool = False
    is_empty: bool = False

    @property
    def weight(self) -> int:
        """Less is better. A lost address is worse than a lost figure, and that is worse than a lost word."""
        missing = 4 * (len(self.lost) + len(self.terms)) + 3 * len(self.made_up) + 2 * len(self.left_out)
        return 20 * self.is_empty + 10 * (self.marks + self.runs_in_circles) + missing + 2 * self.is_cut


@dataclass(frozen=True)
class Attempt:
    """One way to say a segment."""

    text: str
    score: float
    decoded: Decoded
    faults: Faults = Faults()
    alignment: "np.ndarray | None" = field(default=None, repr=False, compare=False)
    request: Request = Request(Masked(""))

    @property
    def rank(self) -> tuple[float, float]:
        """The lowest is the best."""
        return self.faults.weight, -self.score if not math.isnan(self.score) else 0.0


class SegmentDraft:
    """A segment: it stays as it is, or the model is asked for it; `said` is best first."""

    def __init__(self, segment: Segment, rules: Rules, stays: bool, is_first: bool = False) -> None:
        self.segment, self.stays, self.is_first = segment, stays, is_first
        self.said: list[Attempt] = []
        self.warnings: set[str] = set()
        self._rules = rules
        self._tried: list[Request] = []
        self._attempts: list[list[Attempt]] = []
        if not stays:
            self._read()

    def _read(self) -> None:
        """The text as the model is to read it: in its usual case, and with marks for what must not change."""
        rules = self._rules
        aside = marks.masked(self.segment.text, marks.spans(self.segment.text)[: len(MARKS)])  # an address has its case
        reading = casing.as_read(
            aside.text, rules.languages[0], rules.source, rules.lines, is_sentence=not self.segment.is_part
        )
        self._case = reading.case
        # A few words, such as a label, get no mark that they had not; a sentence may have the one that it lacked.
        few = FEW_CHARACTERS if UNSPACED.search(aside.text) else FEW_WORDS
        words = len(aside.text) if UNSPACED.search(aside.text) else len(aside.text.split())
        self._is_label = bool(reading.mark) and words < few and not self.segment.is_unmarked
        text = aside.restored(reading.text)
        self.text = text
        self._terms = rules.glossary.terms(text, rules.languages[0]) if rules.glossary else []
        self._kept = self._spans(text) if rules.has_marks else []
        bare = marks.masked(text, self._kept).text
        self._figures = [] if rules.translates_digits else numbers.figures(marks.without(bare), rules.languages[0])

    @property
    def is_open(self) -> bool:
        return not self.stays and not self.said

    def first_request(self) -> Request:
        """Where the engine does not align, the glossary's phrases are demanded at once."""
        prefix = tuple(self._rules.prefix) if self.is_first else ()
        first = Request(marks.masked(self.text, self._kept), prefix)
        self._tried.append(first if self._rules.aligns else replace(first, phrases=self._phrases()))
        return self._tried[-1]

    def _phrases(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """What the glossary asks for, each in the ways in which it can be written."""
        targets = dict.fromkeys(term.target for term in self._terms)
        ways = (ways_to_write(target, self._rules.target) for target in targets)
        return tuple(tuple(map(tuple, some)) for some in ways if some)

    def is_first_request(self, request: Request) -> bool:
        return self._tried[0] == request

    def provisional(self, request: Request, found: Hypothesis) -> str:
        """What is written so far, while the search goes on; half a character is not shown."""
        self.said = [self._attempt(request, [], found)]
        return self.said[0].text.rstrip("\ufffd")

    def settle(self, request: Request, source: list[int], hypotheses: Sequence[Hypothesis]) -> Request | None:
        """Take what was found for a request; the next one if that may be better, else this segment is done."""
        attempts = [self._attempt(request, source, hypothesis) for hypothesis in hypotheses]
        if request.way == WIDE:
            attempts.sort(key=lambda attempt: attempt.rank)
        self._attempts.append(attempts)
        best = min(self._attempts, key=lambda some: some[0].rank)
        if not self._rules.translates_digits and not guards.has_letters(self.text):
            self.stays = self._loses_digits(best[0])
            self._finish(best)
            return None
        following = self._remedy(best[0], self._attempts[-1][0])
        if following is not None and len(self._tried) < MOST_SEARCHES and self._rules.searches_again:
            self._tried.append(following)
            return following
        self._finish(best[: len(self._attempts[0])])
        return None

    def _loses_digits(self, best: Attempt) -> bool:
        """Of figures alone, only a translation that puts words to all of them is one: 2026-03-04 is 2026年3月4日."""
        lost = numbers.missing(self._figures, best.text, self._rules.languages[1], in_words=False)
        return bool(lost) or not guards.has_letters(best.text) or self._rules.confidence.is_low(best)

    def shorter(self) -> list[Segment]:
        """What this segment can be cut into, if something of it was left out."""
        faults = self.said[0].faults
        if not (faults.left_out or self._is_cut(faults)) or not self._rules.searches_again:
            return []
        parts = self._rules.cutter.shorter(self.segment.text)
        return parts if len(parts) > 1 else []

    def lost_words(self) -> list[str]:
        """What must be in the translation as it is in the text, and is not there."""
        wanted = guards.protected(self.text) + guards.foreign_words(self.text, self._pieces_of)
        wrong = self.said[0].faults.marks or guards.any_missing(wanted, self.said[0].text)
        return [*wanted, *(span.target for span in self._kept if span.target not in wanted)] if wrong else []

    # -- what is wrong, and what may help -----------------------------------------------------------------------------

    def _remedy(self, best: Attempt, last: Attempt) -> Request | None:
        """The next request that was not made yet, for the worst that is wrong with the best attempt so far."""
        faults, first = best.faults, self._tried[0]
        ways: list[Request | None] = []
        if faults.runs_in_circles:
            ways.append(replace(first, way=BLOCKED))
        if faults.is_empty or faults.marks:
            ways.append(replace(first, way=WIDE))
        if faults.lost or faults.terms:
            # With a mark the model does not see the word whose translation it would say beside the term.
            ways.append(self._with_marks(best) if faults.terms else None)
            ways += [self._with_required(one) for one in (last, best)]
            ways.append(self._with_marks(best))
            ways.append(replace(first, phrases=self._phrases()) if faults.terms and self._rules.has_phrases else None)
        if faults.left_out or self._is_cut(faults) or faults.made_up:
            ways.append(replace(best.request, way=WIDE))
        return next((way for way in ways if way is not None and way not in self._tried), None)

    def _is_cut(self, faults: Faults) -> bool:
        return faults.is_cut and not self._rules.has_own_limit

    def _with_required(self, attempt: Attempt) -> Request | None:
        """What was found up to the place where the first figure or term is missing, that, and then on."""
        # An ordinal ends like a sentence in many languages, and the model would end there: it is better a mark.
        wanted = [span for span in self._wanted(attempt.faults) if not span.target.endswith(".")]
        if attempt.alignment is None or not wanted or self._has_more_marks(attempt.request):
            return None
        starts = _starts(attempt.decoded.source, self._rules.source)
        found = [
            (place, span)
            for span in wanted
            if (place := self._place(attempt, attempt.request.masked, span, starts)) is not None
        ]
        if not found:
            return None
        place, span = min(found, key=lambda one: one[0])
        target = attempt.decoded.target
        prefix = self._prefix(target[:place], target[place : place + 1], span.target)
        return replace(attempt.request, prefix=tuple(prefix)) if prefix else None

    def _place(self, attempt: Attempt, masked: Masked, span: Span, starts: Sequence[int]) -> int | None:
        """The target token at which the translation of this stretch of the source begins."""
        assert attempt.alignment is not None
        shift = _shift(self.text, masked, self._kept, span.start)
        start, end = span.start + shift, span.end + shift
        tokens = [i for i, begin in enumerate(starts[:-1]) if begin < end and starts[i + 1] > start]
        weights = attempt.alignment[:-1]
        if not tokens or not len(weights):
            return None
        looks = weights[:, tokens].sum(axis=1)
        likely = [t for t in range(len(weights)) if weights[t].argmax() in tokens]
        place = likely[0] if likely else int(looks.argmax())
        if not likely and looks[place] < guards.SEEN:
            return None
        pieces = self._rules.target.pieces(attempt.decoded.target)
        has_spaces = any(piece.startswith(SPACE) for piece in pieces)
        while place and has_spaces and not pieces[place].startswith(SPACE) and pieces[place - 1][-1:].isalnum():
            place -= 1  # to the beginning of the word
        forced = len(self._rules.prefix) if self.is_first else 0
        return max(place, forced)

    def _prefix(self, before: list[int], replaced: list[int], phrase: str) -> list[int]:
        """The target so far and the phrase, with a space between them if there was one; nothing if it can't be."""
        ways = ways_to_write(phrase, self._rules.target)
        if not ways:
            return []
        piece = self._rules.target.pieces(replaced)[0] if replaced else SPACE
        return before + (ways[0] if not before or piece.startswith(SPACE) else ways[-1])

    def _with_marks(self, attempt: Attempt) -> Request | None:
        """The figures and terms that are missing as marks."""
        wanted = self._wanted(attempt.faults)
        if not self._rules.has_marks or not wanted or len(self._kept) + len(wanted) > len(MARKS):
            return None
        return replace(self._tried[0], masked=marks.masked(self.text, [*self._kept, *wanted]))

    def _has_more_marks(self, request: Request) -> bool:
        """Than what is marked from the start."""
        return len(request.masked.targets) > len(self._kept)

    def _wanted(self, faults: Faults) -> list[Span]:
        """Where in the text the missing figures and terms are, and how the target has them."""
        languages = self._rules.languages
        found = [Span(term.start, term.end, term.target) for term in faults.terms]
        lost = list(faults.lost)
        for figure in numbers.figures(self.text, languages[0]) if lost else []:
            same = next((one for one in lost if one.text == figure.text), None)
            if same is not None and not any(span.start <= figure.start < span.end for span in self._kept):
                lost.remove(same)
                found.append(Span(figure.start, figure.end, numbers.localised(figure, languages)))
        return found

    # -- one answer ---------------------------------------------------------------------------------------------------

    def _attempt(self, request: Request, source: list[int], found: Hypothesis) -> Attempt:
        written = self._rules.target.decode(found.tokens)
        if self._is_label and written[-1:] in FINAL_MARKS:
            written = written[:-1]
        written = numbers.as_written_there(self._figures, written, self._rules.languages)
        text = request.masked.restored(casing.in_case(written, self._case))
        decoded = Decoded(source, found.tokens)
        faults = self._faults(request, decoded, found, written, text)
        return Attempt(text, found.score, decoded, faults, found.alignment, request)

    def _faults(self, request: Request, decoded: Decoded, found: Hypothesis, written: str, text: str) -> Faults:
        rules, bare = self._rules, marks.without(written)
        lost: list[numbers.Figure] = []
        made_up: list[numbers.Figure] = []
        if not rules.translates_digits and (self._figures or any(c.isdecimal() for c in bare)):
            lost = numbers.missing(self._figures, text if self._has_more_marks(request) else bare, rules.languages[1])
            made_up = numbers.added(self.text, bare, rules.languages)
        terms = [term for term in self._terms if not term.is_in(text)]
        left: list[str] = []
        if found.alignment is not None:
            pieces = rules.source.pieces(decoded.source)
            stretches = guards.left_out(pieces, found.alignment)
            left = [request.masked.restored(rules.source.decode(decoded.source[i:j])).strip() for i, j in stretches]
        if not left and self._is_short(decoded):
            left = [self.text]
        return Faults(
            request.masked.wrong(written),
            tuple(lost),
            tuple(made_up),
            tuple(terms),
            tuple(left),
            found.is_cut,
            not rules.repeats and guards.is_repetitive(decoded.source, decoded.target),
            not text.strip(),
        )

    def _is_short(self, decoded: Decoded) -> bool:
        """Whether hardly any training pair of some length had so short a target."""
        lines = self._rules.lines
        if lines is None or len(decoded.source) < max(lines.median, SHORT):
            return False
        return len(decoded.target) < SHORTER * lines.least_ratio * len(decoded.source)

    def _finish(self, attempts: list[Attempt]) -> None:
        if self.stays:
            return
        self.said = attempts
        faults = self.said[0].faults
        if any(request.way == BLOCKED for request in self._tried):
            self.warnings.add("repetition")
        if self._case:
            self.warnings.add("recased")
        if faults.terms:
            self.warnings.add("glossary_missed")
        if faults.lost or faults.made_up:
            self.warnings.add("number_changed")
        if faults.left_out:
            self.warnings.add("left_out")
        if faults.is_cut:
            self.warnings.add("cut_off")

    def details(self) -> dict[str, tuple[str, ...]]:
        """What the warnings are about."""
        if not self.said:
            return {}
        faults = self.said[0].faults
        found = {
            "left_out": faults.left_out,
            "number_changed": tuple(figure.text for figure in (*faults.lost, *faults.made_up)),
            "glossary_missed": tuple(term.source for term in faults.terms),
            "cut_off": (self.segment.text,) if faults.is_cut else (),
            "recased": (self._case,) if self._case else (),
        }
        return {word: about for word, about in found.items() if about}

    def _spans(self, text: str) -> list[Span]:
        """What has a mark from the start; words that the vocabulary can only spell in bytes have one, too."""
        found = marks.spans(text)
        foreign = set(guards.foreign_words(text, self._pieces_of)) if not text.isascii() else set()
        for word in foreign:
            start = text.find(word)
            while start >= 0:
                found.append(Span(start, start + len(word), word))
                start = text.find(word, start + len(word))
        return sorted(found, key=lambda span: span.start)[: len(MARKS)]

    def _pieces_of(self, word: str) -> list[str]:
        return self._rules.source.pieces(self._rules.source.encode(word))


class TextDraft:
    """A text: its segments, and the warnings so far."""

    def __init__(self, text: str, rules: Rules) -> None:
        self.source, self.warnings, self._rules = text, set[str](), rules
        if not text.isprintable():  # seldom
            self.source = guards.without_controls(text)
            if self.source != text:
                self.warnings.add("control_characters")
            if guards.BIDI.search(text):
                self.warnings.add("bidi_controls")
        segments = rules.cutter.cut(normalize("NFC", self.source))
        if any(segment.is_part for segment in segments):
            self.warnings.add("split")
        self.segments = self._drafts(segments)
        if asked := [segment for segment in self.segments if not segment.stays]:
            asked[0].is_first = True

    def _drafts(self, segments: Iterable[Segment]) -> list[SegmentDraft]:
        return [
            SegmentDraft(part, self._rules, stays=not guards.says_something(part.text))
            for segment in segments
            for part in self._with_few_marks(segment)
        ]

    def _with_few_marks(self, segment: Segment) -> list[Segment]:
        """A segment has no more that must stay than there are marks."""
        found = marks.spans(segment.text) if self._rules.has_marks else []
        if len(found) <= len(MARKS):
            return [segment]
        cuts = [0, *marks.places_to_cut(found), len(segment.text)]
        texts = [segment.text[start:end] for start, end in pairwise(cuts)]
        parts = [Segment(text.rstrip(), text[len(text.rstrip()) :], segment.width) for text in texts]
        return [*parts[:-1], replace(parts[-1], gap=segment.gap)]

    @property
    def asks(self) -> bool:
        return any(not segment.stays for segment in self.segments)

    @property
    def is_open(self) -> bool:
        return any(segment.is_open for segment in self.segments)

    def requests(self) -> list[tuple[SegmentDraft, Request]]:
        """What the engine is asked for first."""
        return [(segment, segment.first_request()) for segment in self.segments if not segment.stays]

    def settle(
        self, segment: SegmentDraft, request: Request, source: list[int], hypotheses: Sequence[Hypothesis]
    ) -> list[tuple[SegmentDraft, Request]]:
        """Take what was found; the requests that may mend what is wrong with it."""
        following = segment.settle(request, source, hypotheses)
        if following is not None:
            return [(segment, following)]
        if segment.stays:
            return []
        if lost := segment.lost_words():
            return self._replace(segment, self._apart(segment, lost), "protected")
        if shorter := segment.shorter():
            return self._replace(segment, self._drafts(shorter), "split")
        return []

    def _apart(self, segment: SegmentDraft, words: list[str]) -> list[SegmentDraft]:
        """The words as they are, and what stands around them."""
        new: list[SegmentDraft] = []
        for part, is_word in around(segment.segment.text, words):
            stays = is_word or not guards.says_something(part.text)
            new.append(SegmentDraft(replace(part, width=segment.segment.width), self._rules, stays))
        return new

    def _replace(
        self, segment: SegmentDraft, new: list[SegmentDraft], warning: str
    ) -> list[tuple[SegmentDraft, Request]]:
        """Put these in its place; what the engine is asked for them."""
        if not new:
            return []
        new[-1].segment = replace(new[-1].segment, gap=segment.segment.gap)
        asked = [one for one in new if not one.stays]
        if segment.is_first and asked:
            asked[0].is_first = True
        place = self.segments.index(segment)
        self.segments[place : place + 1] = new
        self.warnings.add(warning)
        return [(one, one.first_request()) for one in asked]

    def result(self, scored: bool) -> list[Translation]:
        """The translations, best first: of n ways to say each segment, the k-th of all together.

        Not `scored`: scores mean nothing, so how sure one can be is not known.
        """
        confidence = self._rules.confidence
        if not self.asks:
            warnings = {*self.warnings, *([] if guards.is_blank(self.source) else ["copied"])}
            return [Translation(self.source, 0.0, None, _ordered(warnings))]
        ways = max(len(segment.said) for segment in self.segments)
        warnings, details = set(self.warnings), dict[str, tuple[str, ...]]()
        for segment in self.segments:
            warnings |= segment.warnings
            for word, about in segment.details().items():
                details[word] = (*details.get(word, ()), *about)
            if scored and segment.said and confidence.is_low(segment.said[0]):
                warnings.add("low_confidence")
        found = []
        for text, said in (self._way(k) for k in range(ways)):
            decoded = tuple(one.decoded for one in said)
            sure = confidence(said) if scored else None
            found.append(Translation(text, _mean(said), sure, _ordered(warnings), decoded, details))
        return found

    def so_far(self, segment: SegmentDraft, text: str) -> str:
        """The text up to this segment, of which so much is written."""
        place = self.segments.index(segment)
        some = self.segments[: place + 1]
        texts = [one.said[0].text if one.said else one.segment.text for one in some[:-1]]
        return join([one.segment for one in some], [*texts, text]).rstrip()

    def _way(self, k: int) -> tuple[str, list[Attempt]]:
        if len(self.segments) == 1:  # as nearly always
            (segment,) = self.segments
            return segment.said[k].text + segment.segment.gap, [segment.said[k]]
        said = [one.said[min(k, len(one.said) - 1)] if one.said else None for one in self.segments]
        texts = [one.text if one else draft.segment.text for one, draft in zip(said, self.segments, strict=True)]
        return join([draft.segment for draft in self.segments], texts), [one for one in said if one]


def _starts(ids: list[int], tokenizer: Tokenizer) -> list[int]:
    """At which character of the text each token begins, and where the last one ends."""
    return [len(tokenizer.decode(ids[:i])) for i in range(len(ids) + 1)]


def _shift(text: str, masked: Masked, kept: Sequence[Span], place: int) -> int:
    """How far what stands at this place of a text has moved, now that marks stand in it."""
    if masked.text == text:
        return 0
    return sum(1 - (span.end - span.start) for span in kept if span.end <= place)


def _ordered(warnings: set[str]) -> tuple[str, ...]:
    return tuple(word for word in guards.WARNINGS if word in warnings) if warnings else ()


def _mean(said: Sequence[Attempt]) -> float:
    """Of all tokens, EOS counted."""
    if len(said) == 1:
        return said[0].score
    sizes = [len(one.decoded.target) + 1 for one in said]
    return sum(one.score * size for one, size in zip(said, sizes, strict=True)) / sum(sizes)
