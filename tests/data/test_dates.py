"""The demo's dates are right, unambiguous, the same everywhere, and the held-out days are really unseen."""

import calendar
import hashlib
import os
import re
import subprocess
import sys
from datetime import date, timedelta

import pytest

from clearhead.data.dates import (
    FIRST,
    LAST,
    SHOWN,
    SPELLINGS,
    chinese,
    held_out_pairs,
    is_held_out,
    says_weekday,
    spell,
    training_pairs,
)

MONTHS = {name.lower(): i for i, name in enumerate(calendar.month_name) if name}
MONTHS |= {name.lower(): i for i, name in enumerate(calendar.month_abbr) if name}
WEEKDAYS = {name.lower(): i for i, name in enumerate(calendar.day_name)}
WEEKDAYS |= {name.lower(): i for i, name in enumerate(calendar.day_abbr)}
SOME_DAYS = [FIRST + timedelta(days=n) for n in range(0, (LAST - FIRST).days + 1, 31)]
TRAINING, HELD_OUT = training_pairs(), held_out_pairs()


def read_english(text: str) -> tuple[date, int | None]:
    """The day, and the weekday if the text has one, by nothing but the shapes of its words."""
    words = re.findall(r"[a-z]+|\d+", re.sub(r"(?<=\d)(st|nd|rd|th)\b", "", text.lower()))
    weekday = next((WEEKDAYS[word] for word in words if word in WEEKDAYS), None)
    numbers = [word for word in words if word.isdigit()]
    if len(numbers) == 3:
        return date(*map(int, numbers)), weekday
    (month,) = (MONTHS[word] for word in words if word in MONTHS)
    day, year = sorted(numbers, key=len) if any(len(number) == 4 for number in numbers) else numbers
    century = 0 if len(year) == 4 else 1900 if int(year) >= 50 else 2000
    return date(century + int(year), month, int(day)), weekday


def read_chinese(text: str) -> tuple[date, int | None]:
    found = re.fullmatch(r"(\d{4})年([1-9]\d?)月([1-9]\d?)日(?:星期([一二三四五六日]))?", text)
    assert found
    year, month, day, weekday = found.groups()
    return date(int(year), int(month), int(day)), "一二三四五六日".index(weekday) if weekday else None


@pytest.mark.parametrize("spelling", range(len(SPELLINGS)), ids=SPELLINGS)
def test_both_languages_read_back_to_the_day(spelling: int) -> None:
    for day in SOME_DAYS:
        weekday = day.weekday() if says_weekday(spelling) else None
        assert read_english(spell(day, spelling)) == (day, weekday)
        assert read_chinese(chinese(day, says_weekday(spelling))) == (day, weekday)


def test_pairs_say_the_same_in_both_languages() -> None:
    for english, target in TRAINING[::11] + HELD_OUT[::11]:
        assert read_english(english) == read_chinese(target)


@pytest.mark.parametrize(
    ("english", "target"),
    [
        ("Wednesday, March 4, 2026", "2026年3月4日星期三"),
        ("March 4, 2026", "2026年3月4日"),
        ("4 Mar 26", "2026年3月4日"),
        ("the 4th of March 2026", "2026年3月4日"),
        ("March 4th, 2026", "2026年3月4日"),
        ("Wed 4 March 2026", "2026年3月4日星期三"),
        ("4 March, 2026", "2026年3月4日"),
        ("2026-03-04", "2026年3月4日"),
    ],
)
def test_what_the_demo_shows_is_held_out(english: str, target: str) -> None:
    assert (english, target) in HELD_OUT
    assert is_held_out(SHOWN)


@pytest.mark.parametrize(
    ("year", "short"), [(1950, "50"), (1971, "71"), (1999, "99"), (2000, "00"), (2026, "26"), (2049, "49")]
)
def test_two_digits_mean_1950_to_2049(year: int, short: str) -> None:
    assert spell(date(year, 3, 4), SPELLINGS.index("{day} {short_month} {two_digits}")) == f"4 Mar {short}"
    assert (date(1950, 1, 1), date(2049, 12, 31)) == (FIRST, LAST)


def test_ordinals() -> None:
    ordinals = [spell(date(2026, 1, n), SPELLINGS.index("{ordinal} {month} {year}")).split()[0] for n in range(1, 32)]
    irregular = {1: "1st", 2: "2nd", 3: "3rd", 21: "21st", 22: "22nd", 23: "23rd", 31: "31st"}
    assert ordinals == [irregular.get(n, f"{n}th") for n in range(1, 32)]


def test_no_day_is_in_both_parts() -> None:
    seen = {target.partition("日")[0] for _, target in TRAINING}
    unseen = {target.partition("日")[0] for _, target in HELD_OUT}
    assert not seen & unseen
    assert 0.04 < len(unseen) / ((LAST - FIRST).days + 1) < 0.06


def test_held_out_days_come_in_every_spelling() -> None:
    pairs = set(HELD_OUT)
    assert len(pairs) == len(HELD_OUT)
    for day in (day for day in SOME_DAYS if is_held_out(day)):
        assert {(spell(day, n), chinese(day, says_weekday(n))) for n in range(len(SPELLINGS))} <= pairs


def test_training_sees_every_spelling_year_month_and_weekday() -> None:
    assert 40_000 <= len(TRAINING) <= 60_000
    assert len(SPELLINGS) == len(set(SPELLINGS)) >= 15
    days = [read_chinese(target)[0] for _, target in TRAINING]
    assert {day.year for day in days} == set(range(1950, 2050))
    assert {(day.month, day.day) for day in days} == {(day.month, day.day) for day in days_of_a_leap_year()}
    sources = {source for source, _ in TRAINING}
    for spelling in range(len(SPELLINGS)):
        assert sum(spell(day, spelling) in sources for day in SOME_DAYS) > len(SOME_DAYS) / 30


def days_of_a_leap_year() -> list[date]:
    return [date(2024, 1, 1) + timedelta(days=n) for n in range(366)]


def test_the_first_pairs_are_a_fair_sample() -> None:
    for pairs in (TRAINING, HELD_OUT):
        with_weekday = [sum("星期" in target for _, target in part) / len(part) for part in (pairs[:1000], pairs)]
        assert abs(with_weekday[0] - with_weekday[1]) < 0.06


def test_another_process_makes_the_same_corpus() -> None:
    code = "from tests.data.test_dates import fingerprint; print(fingerprint())"
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout.strip() == fingerprint()


def fingerprint() -> str:
    return hashlib.sha256(repr((TRAINING, HELD_OUT)).encode()).hexdigest()
