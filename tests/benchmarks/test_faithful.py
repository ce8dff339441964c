"""The judges of what is lost or changed, on translations that are right and on ones that were made wrong."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import cast

import pytest

from benchmarks.faithful import addresses, alignment, confidence, numbers, paragraphs, plain, run, segments, terms
from benchmarks.faithful.addresses import PLACES, Put
from benchmarks.faithful.corpora import draw_texts
from benchmarks.faithful.left_out import left_out, there
from benchmarks.faithful.lexicon import Noun, nouns, plural
from benchmarks.faithful.measures import Asked, Example, Row, join, words
from benchmarks.faithful.page import PARTS, Result, add, load, page
from benchmarks.faithful.segments import Counts, is_named, judge_text, written
from benchmarks.faithful.slots import KINDS, draw
from benchmarks.faithful.system import Said, System
from benchmarks.faithful.terms import Case, misplaced
from benchmarks.faithful.values import Wanted, chinese, dates, german, judge, ordinals, times
from benchmarks.faithful.values import numbers as numbers_of

ROOT = Path(__file__).parents[2]
ALIKE = ["Tom ist hier.", "Maria ist dort.", "Johann ist zu Hause.", "Robert ist in Paris."]


# -- left out ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", range(4))
def test_the_sentence_that_was_dropped_among_similar_ones_is_named(gone: int) -> None:
    text = " ".join(one for place, one in enumerate(ALIKE) if place != gone)
    assert left_out(text, ALIKE, ALIKE) == [gone]
    assert left_out(" ".join(ALIKE), ALIKE, ALIKE) == []


def test_a_sentence_that_is_there_in_the_words_of_the_reference_is_not_left_out() -> None:
    references = ["Tom weilt gerade bei uns.", *ALIKE[1:]]
    assert left_out(" ".join(references), ALIKE, references) == []


def test_of_the_same_sentence_twice_one_is_left_out() -> None:
    assert len(left_out("Komm her. Geh weg.", ["Komm her.", "Komm her.", "Geh weg."], ["", "", ""])) == 0
    assert len(left_out("Komm her. Geh weg.", ["Komm her."] * 2 + ["Geh weg."], ["Ja.", "Ja.", "Ja."])) == 1


@pytest.mark.parametrize("gone", range(3))
def test_a_dropped_chinese_sentence_is_found(gone: int) -> None:
    alone = ["我昨天看见了他。", "他不在家。", "她喜欢喝咖啡。"]
    text = "".join(one for place, one in enumerate(alone) if place != gone)
    assert left_out(text, alone, alone) == [gone]


def test_common_words_elsewhere_do_not_stand_for_a_dropped_sentence() -> None:
    parts = [
        words(one) for one in ("der Mann geht in den Park", "der Hund ist in dem Haus", "die Frau liest in der Bahn")
    ]
    shares = there(parts, [*parts[0], *parts[2]])
    assert shares[0] == shares[2] == 1
    assert shares[1] < 0.3


def test_only_a_warning_that_names_the_sentence_counts() -> None:
    said = Said("…", 0.5, ["left_out"], {"left_out": ["Bob is in Paris"]})
    assert is_named("Bob is in Paris.", said)
    assert not is_named("Mary is there.", said)
    assert is_named("Mary is there.", replace(said, details={}))
    assert not is_named("Mary is there.", Said("…", 0.1, ["low_confidence", "repetition"]))
    counts = Counts()
    pairs = [("Tom is here.", ALIKE[0]), ("Mary is there.", ALIKE[1])]
    own = {0: ALIKE[0], 1: ALIKE[1]}
    found = judge_text("spaces", "Tom is here. Mary is there.", Said(ALIKE[0], 0.9, []), [0, 1], pairs, own, counts)
    assert (counts.sentences, counts.lost, counts.silent) == (2, 1, 1)
    assert "Mary is there." in found[0][1].what


def test_texts_use_every_sentence_before_any_comes_again_and_none_twice_in_a_text() -> None:
    texts = draw_texts([(str(i), str(i)) for i in range(23)], 11, 2, 7, 3)
    assert texts == draw_texts([(str(i), str(i)) for i in range(23)], 11, 2, 7, 3)
    assert all(2 <= len(text) <= 7 and len(set(text)) == len(text) for text in texts)
    assert len({one for text in texts for one in text}) == min(23, sum(map(len, texts)))
    wrapped = written(["This is the first of two sentences.", "This is the second one of these two."], "wrapped", "en")
    assert "\n" in wrapped
    assert max(map(len, wrapped.split("\n"))) <= segments.WIDTH
    assert join(["我在。", "你也在。"], "zh") == "我在。你也在。"


# -- numbers -----------------------------------------------------------------------------------------------------------


def of_value(kind: str, written: str, *values: str) -> Wanted:
    return Wanted(kind, written, tuple(Decimal(value) for value in values))


HALF_PAST = Wanted("time", "5:30", clock=time(5, 30))
LATE = Wanted("time", "5:30 p.m.", clock=time(17, 30), half="pm")
DAY = Wanted("date", "March 4, 2019", day=date(2019, 3, 4))
GOOD = [
    ("de", of_value("decimal", "2.5", "2.5"), "Ich brauche 2,5 Stunden."),
    ("de", of_value("decimal", "2.5", "2.5"), "Ich brauche zweieinhalb Stunden."),
    ("zh", of_value("decimal", "2.5", "2.5"), "我需要2.5小时。"),
    ("zh", of_value("decimal", "2.5", "2.5"), "我需要两个半小时。"),
    ("de", of_value("thousands", "2,500", "2500"), "Mehr als 2.500 Leute kamen."),
    ("de", of_value("thousands", "2,500", "2500"), "Mehr als 2 500 Leute kamen."),
    ("de", of_value("thousands", "2,500", "2500"), "Mehr als zweitausendfünfhundert Leute kamen."),
    ("zh", of_value("thousands", "2,500", "2500"), "两千五百多人来了。"),
    ("zh", of_value("thousands", "10,000", "10000"), "他给了我1万日元。"),
    ("de", of_value("small", "3", "3"), "Ich habe drei Kinder."),
    ("zh", of_value("small", "2", "2"), "我有两只狗。"),
    ("de", of_value("negative", "-5", "-5"), "Es sind minus 5 Grad."),
    ("de", of_value("negative", "-5", "-5"), "Es sind −5 Grad."),
    ("zh", of_value("negative", "-5", "-5"), "零下5度。"),
    ("de", of_value("percent", "38.5%", "38.5"), "Etwa 38,5 % der Leute."),
    ("zh", of_value("percent", "30%", "30"), "百分之三十的人。"),
    ("de", of_value("range", "10-20", "10", "20"), "Es dauert 10–20 Minuten."),
    ("de", of_value("range", "10-20", "10", "20"), "Es dauert 10 bis 20 Minuten."),
    ("de", of_value("ordinal", "3rd", "3"), "Sie wohnt im 3. Stock."),
    ("de", of_value("ordinal", "3rd", "3"), "Sie wohnt im dritten Stock."),
    ("de", of_value("ordinal", "16th", "16"), "Er war der 16."),
    ("zh", of_value("ordinal", "3rd", "3"), "这是我第三次来。"),
    ("de", HALF_PAST, "Wir trafen uns um 5.30 Uhr."),
    ("de", HALF_PAST, "Wir trafen uns um halb sechs."),
    ("zh", HALF_PAST, "我们五点半见面。"),
    ("zh", HALF_PAST, "我们5点30分见面。"),
    ("de", LATE, "Wir trafen uns um 17:30 Uhr."),
    ("de", LATE, "Wir trafen uns um 5:30 Uhr nachmittags."),
    ("zh", LATE, "我们下午5:30见面。"),
    ("de", DAY, "Er kam am 4. März 2019."),
    ("de", DAY, "Er kam am 04.03.2019."),
    ("zh", DAY, "他2019年3月4日来了。"),
    ("de", Wanted("version", "2.0.1"), "Nimm Version 2.0.1."),
    ("de", Wanted("phone", "555-0123"), "Ruf mich unter 555-0123 an."),
]
BAD = [
    ("de", of_value("decimal", "2.5", "2.5"), "Ich brauche 25 Stunden."),
    ("de", of_value("decimal", "2.5", "2.5"), "Ich brauche 2.5 Stunden."),
    ("zh", of_value("decimal", "2.5", "2.5"), "我需要25小时。"),
    ("de", of_value("money", "19.99 dollars", "19.99"), "Ich habe 199 Dollar bezahlt."),
    ("de", of_value("decimal", "1.85", "1.85"), "Er ist 185 m groß."),
    ("de", of_value("thousands", "2,500", "2500"), "Mehr als 2,500 Leute kamen."),
    ("de", of_value("thousands", "2,500", "2500"), "Mehr als 200 Leute kamen."),
    ("zh", of_value("thousands", "10,000", "10000"), "他给了我1千日元。"),
    ("de", of_value("small", "3", "3"), "Ich habe 33 Kinder."),
    ("de", of_value("small", "3", "3"), "Ich habe drei Kinder und 7 Hunde."),
    ("de", of_value("negative", "-5", "-5"), "Es sind 5 Grad."),
    ("de", of_value("percent", "38.5%", "38.5"), "Etwa 38,5 der Leute."),
    ("de", of_value("range", "10-20", "10", "20"), "Es dauert 1020 Minuten."),
    ("de", of_value("range", "10-20", "10", "20"), "Es dauert 10 Minuten."),
    ("de", of_value("ordinal", "3rd", "3"), "Sie wohnt im 33. Stock."),
    ("de", of_value("ordinal", "3rd", "3"), "Sie hat 3 Stöcke."),
    ("de", HALF_PAST, "Wir trafen uns um 530."),
    ("de", HALF_PAST, "Wir trafen uns um 5.30."),
    ("zh", HALF_PAST, "我们530见面。"),
    ("de", LATE, "Wir trafen uns um 5:30 Uhr."),
    ("de", replace(LATE, half="am", clock=time(5, 30)), "Wir trafen uns um 17:30 Uhr."),
    ("de", DAY, "Er kam am 3. April 2019."),
    ("de", DAY, "Er kam am 4. März."),
    ("zh", DAY, "他2019年4月3日来了。"),
    ("de", Wanted("version", "2.0.1"), "Nimm Version 20.1."),
    ("de", Wanted("version", "2.0.1"), "Nimm Version 12.0.1."),
    ("de", Wanted("phone", "555-0123"), "Ruf mich unter 555-012 an."),
]


@pytest.mark.parametrize(("language", "wanted", "target"), GOOD)
def test_a_number_is_right_in_all_ways_in_which_the_language_has_it(language: str, wanted: Wanted, target: str) -> None:
    assert judge(wanted, f"It is {wanted.written}.", target, language) == ""


@pytest.mark.parametrize(("language", "wanted", "target"), BAD)
def test_a_number_that_was_changed_is_wrong(language: str, wanted: Wanted, target: str) -> None:
    assert judge(wanted, f"It is {wanted.written}.", target, language)


def test_number_words_are_read() -> None:
    assert german("neunhundertsiebenundachtzigtausendsechshundertdreiundzwanzig") == 987_623
    assert [german(one) for one in ("einundzwanzig", "hundert", "tausendeins", "und", "zwanzigundzwanzig")] == [
        21, 100, 1001, None, None,
    ]  # fmt: skip
    assert [chinese(one) for one in ("十二", "二十", "一百零五", "两万三千", "一九八七", "十万")] == [
        12, 20, 105, 23_000, 1987, 100_000,
    ]  # fmt: skip
    assert [one.value for one in numbers_of("zwei von 1.250,5 und 3 Millionen", "de")] == [
        2,
        Decimal("1250.5"),
        3_000_000,
    ]
    assert times("um Viertel vor sechs, um 7 Uhr und um 23:05", "de") == [time(23, 5), time(7), time(5, 45)]
    assert ordinals("der achtundzwanzigste und die 3. Frau", "de") == [3, 28]
    assert dates("vom 1.2.2003 bis 2004-05-06", "de") == [(2004, 5, 6), (2003, 2, 1)]


def test_numbers_are_drawn_of_all_kinds_and_again_the_same() -> None:
    sources = ["I have two big dogs.", "He left yesterday.", "It was the first time.", "She waited three hours."]
    drawn = draw(sources, 141, 5)
    assert drawn == draw(sources, 141, 5)
    assert len(drawn) == len({one.text for one in drawn}) == 141
    assert {one.wanted.kind for one in drawn} == set(KINDS)
    assert all(one.text.count(one.wanted.written.removesuffix(".")) >= 1 and "{" not in one.text for one in drawn)
    assert any("big dogs" in one.text for one in drawn)


# -- addresses ---------------------------------------------------------------------------------------------------------

MAIL = Put(
    "email", "at the end", "tom.smith@example.org", "Write to tom.smith@example.org.", "Write to Tom.", "Schreib."
)


@pytest.mark.parametrize(
    ("translation", "is_right"),
    [
        ("Schreib an tom.smith@example.org.", True),
        ("Schreib (tom.smith@example.org).", True),
        ("写信给tom.smith@example.org。", True),
        ("Schreib an tom.smith@example.org tom.smith@example.org.", False),
        ("Schreib an tom.smith@example.org, smith.", False),
        ("Schreib an tom.smith@example.or.", False),
        ("Schreib.tom.smith@example.org", False),
        ("Schreib an tom.smith@example.orgTom", False),
        ("Schreib an tom.smith@example.org.Er", False),
        ("Schreib.", False),
    ],
)
def test_an_address_is_there_once_and_whole(translation: str, is_right: bool) -> None:
    assert (addresses.fault(MAIL, translation) == "") == is_right


def test_addresses_stand_where_they_should() -> None:
    sentence = "If it rains, we stay here."
    assert [put(sentence, "X") for put in PLACES.values()] == [
        "X If it rains, we stay here.",
        "If it rains, X we stay here.",
        "If it rains, we stay here X.",
        "If it rains, X we stay here.",
        "If it rains, we stay here (X).",
    ]
    puts = addresses.draw([(sentence, "Bei Regen bleiben wir hier.")], 30, 1)
    assert {(put.kind, put.place) for put in puts} == {(kind, place) for kind in addresses.KINDS for place in PLACES}
    assert all(put.text.count(put.address) == 1 and put.named.count("Tom") == 1 for put in puts)
    assert addresses.without("Wir bleiben (X@y.org) hier.", "X@y.org", "de") == "Wir bleiben hier."


# -- terms -------------------------------------------------------------------------------------------------------------

CAT = Noun("cat", ("cat", "cats"), {"Katze": 0.9, "Katzen": 0.2})
CASE = Case("invented", CAT, "cat", "Minu", "My cat is black.", "Meine Katze ist schwarz.")


@pytest.mark.parametrize(
    ("translation", "is_right"),
    [
        ("Meine Minu ist schwarz.", True),
        ("Mein Minu ist schwarz.", True),
        ("Meine Minus ist schwarz.", True),
        ("Meine Katze ist schwarz.Minu.", False),
        ("Meine Katze ist schwarz. Minu.", False),
        ("Meine Katze ist schwarz.", False),
        ("Meine Minu Minu ist schwarz.", False),
        ("Mein Hund ist schwarz und Minu dort.", False),
        ("MeineMinu ist schwarz.", False),
        ("Meine Minutaur ist schwarz.", False),
    ],
)
def test_a_term_is_where_the_words_translation_was(translation: str, is_right: bool) -> None:
    assert (misplaced(CASE, "Meine Katze ist schwarz.", translation, "de") == "") == is_right


def test_a_term_that_is_the_models_own_word_is_right() -> None:
    own = replace(CASE, kind="own", term="Katze")
    assert misplaced(own, "Meine Katze ist schwarz.", "Meine Katze ist schwarz.", "de") == ""


def test_a_chinese_term_is_judged_by_its_characters() -> None:
    case = Case(
        "invented", Noun("cat", ("cat", "cats"), {"猫": 0.9}), "cat", "龙木", "My cat is black.", "我的猫是黑的。"
    )
    assert misplaced(case, "我的猫是黑的。", "我的龙木是黑的。", "zh") == ""
    assert misplaced(case, "我的猫是黑的。", "我的猫是黑的。龙木", "zh")


def test_the_lexicon_finds_nouns_and_their_words() -> None:
    german_words = {"cat": "Katze", "dog": "Hund", "house": "Haus"}
    train = [(f"I see the {one}.", f"Ich sehe {two}.") for one, two in german_words.items() for _ in range(7)]
    train += [(f"I see {plural(one)}.", f"Ich sehe {two}e.") for one, two in german_words.items()]
    found = nouns(train, ["Here are cats and a house."], "de")
    assert {noun.word: next(iter(noun.targets)) for noun in found.values()} == {"cat": "Katze", "house": "Haus"}
    assert "Hause" in found["house"].targets
    cases = terms.draw(found, train, [("My cat sleeps.", "Die Katze da.")] * 2, 3, "de", 1)
    assert cases
    assert {case.noun.word for case in cases} == {"cat"}


# -- the parts, by a system that only pretends -------------------------------------------------------------------------


class Pretending:
    """Says of every text what a function says."""

    source_language, target_language, engine = "en", "de", "none"

    def translate(self, texts: Sequence[str], glossary: Sequence[tuple[str, str]] = ()) -> list[Said]:
        return [Said(text, 0.9, ["glossary_missed"] if glossary else []) for text in texts]


def test_what_was_measured_stays_and_the_page_has_before_beside_now(tmp_path: Path) -> None:
    rows = [Row("numbers right", "1 of 2 (50.00 %)", False), Row("speed", "3 | *x*")]
    now = Result(
        "numbers", "ende", "now", "…", 1, {"cpu": "x"}, 0.5, rows, [Example("a: b", "s", "t", ["low_confidence"])]
    )
    add(now, tmp_path)
    add(replace(now, system="before", rows=[Row("numbers right", "0 of 2", False)], examples=[]), tmp_path)
    add(replace(now, rows=[Row("numbers right", "2 of 2", True), rows[1]]), tmp_path)
    results = load(tmp_path / "FAITHFUL.json")
    assert [one.key for one in results] == [("numbers", "ende", "before"), ("numbers", "ende", "now")]
    text = (tmp_path / "FAITHFUL.md").read_text(encoding="utf-8")
    assert text == page(results)
    assert "| numbers right | 0 of 2 ✗ | 2 of 2 ✓ |" in text
    assert "| speed | – | 3 \\| \\*x\\* |" in text


def test_every_part_says_which_models_it_asks() -> None:
    assert set(run.MEASURES) == set(PARTS)
    for part in (segments, paragraphs, numbers, addresses, terms, plain, alignment):
        assert part.MODELS


def test_a_folder_without_a_name_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, message in (("somewhere", "NAME=FOLDER"), ("ende=/no/such", "there is no folder /no/such")):
        with pytest.raises(SystemExit):
            run.main(["--model", wrong])
        assert message in capsys.readouterr().err


def test_the_page_is_what_its_json_says() -> None:
    folder = ROOT / "benchmarks"
    assert (folder / "FAITHFUL.md").read_text(encoding="utf-8") == page(load(folder / "FAITHFUL.json"))
    assert json.loads((folder / "FAITHFUL.json").read_text(encoding="utf-8"))


def test_terms_are_asked_in_one_glossary_and_own_words_each_alone() -> None:
    asked = Asked(cast(System, Pretending()), "ende", 1, 1.0)
    said = terms.said_of(asked, [CASE, replace(CASE, kind="own", term="Katze")])
    assert [one.text for one in said] == [CASE.source, CASE.source]


def test_confidence_is_held_against_what_is_asked() -> None:
    found = {
        "test": {"ece": 0.02},
        "typos": {"ece": 0.06},
        "random pieces": {"auroc": 0.97, "below": 0.9},
        "domain help": {"ece": 0.05},
    }
    met = {row.asked.split(" (")[0]: row.is_met for row in confidence.rows_of(found)}
    assert met == {
        "AUROC between clean text and random pieces": True,
        "random pieces with a confidence below 0.1": False,
        "calibration error of typos": False,
        "calibration error of domain help": True,
        "calibration error of test": None,
    }


def test_the_calibration_error_is_the_distance_from_chrf() -> None:
    pairs = [(text, text) for text in ("Tom is here.", "Mary is there.", "John is at home.")]
    assert confidence.error_of(cast(System, Pretending()), pairs) == pytest.approx(0.1)
