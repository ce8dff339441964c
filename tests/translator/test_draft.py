"""What is asked again, and what is said of what stays wrong: by an engine that goes word for word and forgets some."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from clearhead.data.lines import Lines
from clearhead.data.options import DataOptions
from clearhead.data.tokenizer import MARKS, Words
from clearhead.decoding import DecodingOptions, Demand, Hypothesis
from clearhead.model.options import TransformerOptions
from clearhead.translator import Glossary, Translation, Translator
from clearhead.translator.glossary import Entry
from clearhead.translator.translator import LEAST_WIDE

from .stub import StubEngine, stub_translator

WORDS = (
    "I=ich need=brauche hours=Stunden cat=Katze cats=Katzen my=meine is=ist black=schwarz 2.5=2,5 25=25 7.5=25 "
    "write=schreibe to=an today=heute dog=Hund and=und the=die Tom=Tom sleeping=schläft Mieze=Mieze Minka=Minka "
    ".=. ,=, here=hier elephants=Elefanten wonderful=wunderbar animals=Tiere "
)
PAIRS = dict(pair.split("=") for pair in WORDS.split())
ENGLISH = Words([*PAIRS, *MARKS])
GERMAN = Words([*dict.fromkeys([*PAIRS.values(), "Miezen"]), *MARKS])
LINES = Lines(count=99, several=0.0, median=5, long=20, longest=30, least_ratio=0.5, capital=0.0, ended=0.0)


class WordForWord(StubEngine):
    """Each word has its own, and the alignment says so; `mistakes` say another word, and none for what is left out.

    A word that was said right because it had to be is followed by the words after it, as a model would go on.
    """

    aligns = True

    def __init__(self, mistakes: Mapping[str, str | None] | None = None, wide: bool = False) -> None:
        super().__init__()
        self.mistakes, self.wide = mistakes or {}, wide
        self.requests: list[str] = []

    def translate_batches(
        self, sources: Sequence[list[int]], options: DecodingOptions, demands: Sequence[Demand] | None = None
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        assert demands is not None
        for place, (source, demand) in enumerate(zip(sources, demands, strict=True)):
            self.requests.append(ENGLISH.decode(source))
            best = self._said(source, demand.prefix, self.mistakes)
            others = [self._said(source, demand.prefix, {} if self.wide else self.mistakes)] * (options.n_best - 1)
            found = [replace(one, score=-0.5 - 0.1 * n) for n, one in enumerate([best, *others])]
            yield [place], [found]

    def _said(self, source: list[int], prefix: list[int], mistakes: Mapping[str, str | None]) -> Hypothesis:
        target, looks = list(prefix), list(range(len(prefix)))
        for place in range(len(prefix), len(source)):
            word = ENGLISH.decode([source[place]])
            said = mistakes.get(word, word if word in MARKS else PAIRS[word])
            if said is not None:
                target += GERMAN.encode(said)
                looks.append(place)
        weights = np.zeros((len(target) + 1, len(source) + 1), np.float32)
        weights[range(len(target) + 1), [*looks, len(source)]] = 1
        return Hypothesis(target, -0.5, weights)


def translator(engine: WordForWord, **sections: Any) -> Translator:
    config = {
        "model": {"kind": "transformer", **asdict(TransformerOptions(len(ENGLISH), len(GERMAN), tied="target"))},
        "data": asdict(DataOptions(source_language="en", target_language="de", tokenizer="words")),
        "lines": asdict(LINES),
        **sections,
    }
    return Translator(engine, ENGLISH, GERMAN, DecodingOptions(beam=2), config)


def translated(text: str, engine: WordForWord, terms: dict[str, str] | None = None) -> Translation:
    glossary = Glossary(Entry(*pair) for pair in terms.items()) if terms else None
    ((best, *_),) = translator(engine).alternatives(text, None, glossary)
    return best


def test_what_is_right_is_not_asked_again() -> None:
    engine = WordForWord()
    best = translated("I need 2.5 hours", engine)
    assert (best.text, best.warnings) == ("ich brauche 2,5 Stunden", ())
    assert engine.requests == ["I need 2.5 hours"]


def test_a_figure_that_was_changed_is_required_where_it_stood() -> None:
    engine = WordForWord({"2.5": "25"})
    best = translated("I need 2.5 hours", engine)
    assert (best.text, best.warnings) == ("ich brauche 2,5 Stunden", ())
    assert engine.requests == ["I need 2.5 hours"] * 2


def test_a_figure_that_cannot_be_written_is_a_mark_and_else_told() -> None:
    """The German vocabulary has no 7,5."""
    best = translated("I need 7.5 hours", WordForWord())
    assert (best.text, best.warnings) == ("ich brauche 7,5 Stunden", ())
    best = translated("I need 7.5 hours", WordForWord(dict.fromkeys(MARKS)))
    assert (best.text, best.warnings) == ("ich brauche 25 Stunden", ("number_changed",))
    assert best.details == {"number_changed": ("7.5", "25")}


@pytest.mark.parametrize(("text", "terms", "expected"), [
    ("my cat is black", {"cat": "Mieze"}, "meine Mieze ist schwarz"),
    ("my cats need hours", {"cat|cats": "Mieze|Miezen"}, "meine Miezen brauche Stunden"),
    ("my cats need hours", {"cat": "Mieze"}, "meine Mieze brauche Stunden"),
    ("the cat and the dog", {"cat": "Mieze", "dog": "Minka"}, "die Mieze und die Minka"),
    ("my cat is black", {"cat": "Katze"}, "meine Katze ist schwarz"),
])  # fmt: skip
def test_a_term_replaces_the_translation_of_its_source(text: str, terms: dict[str, str], expected: str) -> None:
    best = translated(text, WordForWord(), terms)
    assert (best.text, best.warnings) == (expected, ())


def test_a_term_that_cannot_be_had_is_told() -> None:
    engine = WordForWord(dict.fromkeys(MARKS))
    best = translated("my cat is black", engine, {"cat": "Quokka"})
    assert (best.text, best.warnings) == ("meine Katze ist schwarz", ("glossary_missed",))
    assert best.details == {"glossary_missed": ("cat",)}


def test_an_address_is_a_mark_and_no_sentence_is_cut_for_it() -> None:
    engine = WordForWord()
    best = translated("I write to tom@example.org today", engine)
    assert (best.text, best.warnings) == ("ich schreibe an tom@example.org heute", ())
    assert engine.requests == [f"I write to {MARKS[0]} today"]


def test_an_address_that_is_lost_all_the_same_stands_between_what_surrounds_it() -> None:
    engine = WordForWord(dict.fromkeys(MARKS))
    best = translated("I write to tom@example.org today", engine)
    assert (best.text, best.warnings) == ("ich schreibe an tom@example.org heute", ("protected",))


def test_what_was_left_out_is_looked_for_with_a_wider_beam() -> None:
    text = "I need hours and the wonderful elephants"
    forgetful = {"wonderful": None, "elephants": None}
    best = translated(text, WordForWord(forgetful, wide=True))
    assert (best.text, best.warnings) == ("ich brauche Stunden und die wunderbar Elefanten", ())
    assert len(translated(text, WordForWord(), None).warnings) == 0
    assert LEAST_WIDE > 2


def test_what_stays_left_out_is_named() -> None:
    best = translated("I need hours and the wonderful elephants", WordForWord({"wonderful": None, "elephants": None}))
    assert best.warnings == ("left_out",)
    assert best.details == {"left_out": ("wonderful elephants",)}


def test_a_sentence_of_which_something_was_left_out_is_cut_at_its_clauses() -> None:
    class Forgets(WordForWord):
        """What stands far from the beginning."""

        def _said(self, source: list[int], prefix: list[int], mistakes: Mapping[str, str | None]) -> Hypothesis:
            known = super()._said(source[:4], prefix, mistakes)
            assert known.alignment is not None
            seen = np.zeros((len(known.tokens) + 1, len(source) + 1), np.float32)
            seen[:, : known.alignment.shape[1]] = known.alignment
            return replace(known, alignment=seen)

    english = "Tom is here , the elephants need hours"
    best = translated(english, Forgets())
    assert best.text == "Tom ist hier , die Elefanten brauche Stunden"
    assert best.warnings == ("split",)


def test_words_that_need_no_counterpart_are_no_loss() -> None:
    best = translated("I need the hours", WordForWord({"the": None}))
    assert (best.text, best.warnings) == ("ich brauche Stunden", ())


def test_samples_are_taken_as_they_come() -> None:
    engine = WordForWord({"2.5": "25"})
    options = DecodingOptions(beam=2, temperature=1.0)
    best = translator(engine).alternatives("I need 2.5 hours", options)[0][0]
    assert (best.text, best.warnings) == ("ich brauche 25 Stunden", ("number_changed",))
    assert len(engine.requests) == 1


def test_a_limit_that_the_search_ran_into_is_told() -> None:
    class Endless(WordForWord):
        def _said(self, source: list[int], prefix: list[int], mistakes: Mapping[str, str | None]) -> Hypothesis:
            return replace(super()._said(source, prefix, mistakes), is_cut=True)

    best = translated("I need hours", Endless())
    assert best.warnings == ("cut_off",)
    assert best.details == {"cut_off": ("I need hours",)}


def test_a_mark_at_the_end_is_added_for_the_model_and_taken_away_again() -> None:
    """Where nearly all training lines have one; `hours.` is no word of the first vocabulary, so not there."""
    lines = asdict(replace(LINES, ended=1.0))
    engine = WordForWord()
    assert translator(engine, lines=lines).translate("I need hours") == ["ich brauche Stunden"]
    assert engine.requests == ["I need hours"]
    spelled = stub_translator(StubEngine(), lines=lines)
    assert spelled.translate(["abc", "abc!", "abc,"]) == ["abc", "abc!", "abc,"]
    assert isinstance(spelled.engine, StubEngine)
    assert sorted(spelled.engine.asked) == ["abc!", "abc,", "abc."]


def test_an_address_keeps_its_case_in_a_text_that_does_not() -> None:
    lines = asdict(replace(LINES, capital=1.0))
    engine = StubEngine()
    (found,) = stub_translator(engine, lines=lines).translate("hello abc@de.fg and www.ab.cd")
    assert found == "Hello abc@de.fg and www.ab.cd"
    (best, *_) = translator(WordForWord()).alternatives("MY CAT IS HERE Tom@Example.org")[0]
    assert best.text == "MEINE KATZE IST HIER Tom@Example.org"


def test_an_address_that_is_lost_is_first_looked_for_with_a_wider_beam() -> None:
    engine = WordForWord(dict.fromkeys(MARKS), wide=True)
    best = translated("I write to tom@example.org today", engine)
    assert (best.text, best.warnings) == ("ich schreibe an tom@example.org heute", ())
    assert len(engine.requests) == 2
