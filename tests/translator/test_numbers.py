"""Figures are compared by what they are worth, and written as the target's language has them."""

from decimal import Decimal

import pytest
from babel.numbers import format_decimal, parse_decimal
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.translator import numbers

LOCALES = {"en": "en_US", "de": "de_DE", "fr": "fr_FR", "zh": "zh_CN", "es": "es_ES", "pl": "pl_PL"}


def missing(source: str, target: str, languages: tuple[str, str] = ("en", "de")) -> list[str]:
    found = numbers.missing(numbers.figures(source, languages[0]), target, languages[1])
    return [figure.text for figure in found]


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ("I need 2.5 hours.", "Ich brauche 2,5 Stunden.", []),
        ("I need 2.5 hours.", "Ich brauche 25 Stunden.", ["2.5"]),
        ("I paid 19.99 dollars.", "Ich habe 199 Dollar bezahlt.", ["19.99"]),
        ("2,500 and 1,234,567.89", "2500 und 1.234.567,89", []),
        ("2,500 people", "200 Leute", ["2,500"]),
        ("at 5:30", "um 5.30 Uhr", []),
        ("at 5:30", "um 5 Uhr 30", []),
        ("at 5:00", "um 5 Uhr", []),
        ("at 5:30", "um 530", ["5:30"]),
        ("two cats", "zwei Katzen", []),
        ("I have 2 cats", "Ich habe zwei Katzen", []),
        ("I have 2 cats", "Ich habe drei Katzen", ["2"]),
        ("3 times 3", "3 mal vier", ["3"]),
        ("the 3rd of 50%", "der 3. von 50 %", []),
        ("-5 degrees", "-5 Grad", []),
        ("-5 degrees", "5 Grad", ["-5"]),
        ("COVID-19 on 10-12 May", "COVID-19 am 10-12 Mai", []),
        ("2-13 chores", "213 Arbeiten", ["2-13"]),
        ("on May 3rd, 2026", "am 3. Mai 2026", []),
        ("on May 3, 2026", "am 3. März 2026", ["May 3, 2026"]),
        ("at 1:54 p.m.", "um 13:54 Uhr", []),
        ("at 1:54 p.m.", "um 1:54 Uhr", ["1:54 p.m."]),
        ("at 17:05", "um 17:5 Uhr", ["17:05"]),
        ("my 20th visit", "mein 20 Besuch", ["20"]),
        ("my 12th visit", "mein zwölfter Besuch", []),
        ("my 12th visit", "mein zwölf Besuch", ["12"]),
        ("15 percent water", "15 Prozent Wasser", []),
        ("15 percent water", "15 Produktes Wasser", ["15 percent"]),
        ("50% of it", "50 % davon", []),
        ("in '26", "im Jahr 2026", []),
        ("0", "nichts", ["0"]),
        ("version 1.2.3", "Version 1.2.3", []),
        ("version 1.2.3", "Version 1.2.4", ["1.2.3"]),
        ("１２ o'clock", "12 Uhr", []),
        ("no number", "1", []),
    ],
)
def test_what_is_missing(source: str, target: str, lost: list[str]) -> None:
    assert missing(source, target) == lost


@pytest.mark.parametrize(
    ("source", "target", "languages", "new"),
    [
        ("I paid 19.99 dollars.", "Ich habe 199 Dollar bezahlt.", ("en", "de"), ["199"]),
        ("a hundred dollars", "100 Dollar", ("en", "de"), []),
        ("hello", "hallo 77", ("en", "de"), ["77"]),
        ("in March", "am 3.", ("en", "de"), []),
        ("in March", "am 33.", ("en", "de"), ["33"]),
        ("abolish the penalty in 1678", "1678 in 678", ("en", "de"), ["678"]),
        ("三十二", "32", ("zh", "en"), []),
        ("anything in a language without a list", "77", ("sw", "en"), []),
    ],
)
def test_what_is_made_up(source: str, target: str, languages: tuple[str, str], new: list[str]) -> None:
    assert [figure.text for figure in numbers.added(source, target, languages)] == new


@settings(deadline=None)  # babel reads each locale when it is first needed
@given(st.decimals(-10_000_000, 10_000_000, places=3).filter(bool), st.sampled_from(sorted(LOCALES)))
def test_what_babel_writes_is_worth_the_same_in_every_language(value: Decimal, language: str) -> None:
    written = format_decimal(value, locale=LOCALES[language], format="#,##0.###;-#,##0.###")
    (figure,) = numbers.figures(f"x {written} y", language)
    if len(figure.readings) == 1:  # 5.30 may be a time in German
        assert figure.readings == ((value.normalize(),),)
    for other, locale in LOCALES.items():
        there = numbers.localised(figure, (language, other))
        if language not in ("fr", "pl"):
            assert parse_decimal(there.replace("−", "-"), locale=locale) == value.normalize()


def test_what_was_copied_is_written_as_the_target_has_it() -> None:
    def written(source: str, target: str, languages: tuple[str, str] = ("en", "de")) -> str:
        return numbers.as_written_there(numbers.figures(source, languages[0]), target, languages)

    assert written("I need 2.5 hours.", "Ich brauche 2.5 Stunden.") == "Ich brauche 2,5 Stunden."
    assert written("1,000 of 2.5", "1,000 von 2.5") == "1.000 von 2,5"
    assert written("3.5 Uhr", "3.5 Uhr", ("und", "und")) == "3.5 Uhr"
    assert written("at 5:30", "um 5.30 Uhr") == "um 5.30 Uhr"


def test_ordinals_are_written_as_the_language_has_them() -> None:
    (figure,) = numbers.figures("the 3rd", "en")
    found = {other: numbers.localised(figure, ("en", other)) for other in ("de", "zh", "en", "fr")}
    assert found == {"de": "3.", "zh": "第3", "en": "3", "fr": "3"}
    assert [one.is_ordinal for one in numbers.figures("der 3. Mann um 3.", "de")] == [True, False]


def test_dates_times_and_percentages_are_written_as_the_language_has_them() -> None:
    def written(text: str, languages: tuple[str, str]) -> list[str]:
        return [numbers.localised(figure, languages) for figure in numbers.figures(text, languages[0])]

    assert written("On March 4, 2026 at 1:54 p.m. 2.5 percent", ("en", "de")) == ["4. März 2026", "13:54", "2,5\u00a0%"]
    assert written("On March 4 at 12:05 a.m.", ("en", "zh")) == ["3月4日", "0:05"]
    assert written("am 3. Mai 1999 um 17.30 Uhr", ("de", "en")) == ["May 3, 1999", "17:30"]
    assert written("2026年3月4日", ("zh", "de")) == ["4. März 2026"]


def test_every_list_of_words_is_whole() -> None:
    words = numbers._in_words()["words"]
    assert all(len(text.split()) == numbers.MOST_WORDS + 1 for text in words.values())
