"""The built-in corpus of the demo: English dates in many spellings, and the same dates in Chinese.

The order of day, month and year is turned around, ordinals and names become numbers, two-digit years become four,
and the weekday moves to the end. Names come from Babel's CLDR data. Some days are held out in every spelling, so
that a right translation of them was not learned by heart.
"""

import hashlib
from datetime import date, timedelta
from functools import cache

FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)  # so that two digits of a year are enough
SHOWN = date(2026, 3, 4)  # what the demo translates; always held out
HELD_OUT = 13 / 256  # share of the days
USED = 16 / 256  # share of a day's spellings that training sees

SPELLINGS = (
    "{month} {day}, {year}",  # March 4, 2026
    "{weekday}, {month} {day}, {year}",
    "{day} {short_month} {two_digits}",
    "the {ordinal} of {month} {year}",
    "{month} {ordinal}, {year}",
    "{short_weekday} {day} {month} {year}",
    "{day} {month}, {year}",
    "{day} {month} {year}",
    "{short_month} {day}, {year}",
    "{weekday} {day} {month} {year}",
    "{short_weekday}, {short_month} {day}, {year}",
    "{weekday} the {ordinal} of {month}, {year}",
    "{ordinal} {month} {year}",
    "{day}-{short_month}-{year}",
    "{day}-{short_month}-{two_digits}",
    "{short_weekday}, {day} {short_month} {two_digits}",
    "{year} {month} {day}",
    "{year}, {short_month} {day}",
    "{weekday}, {year} {month} {day}",
    "{month} the {ordinal}, {year}",
    "{short_month} {ordinal} '{two_digits}",
    "{ordinal} of {short_month}, {year}",
    "{iso}",
    "{short_weekday} {iso}",
)


def spell(day: date, spelling: int) -> str:
    """The day in English, as SPELLINGS has it."""
    months, short_months, weekdays, short_weekdays = _english_names()
    return SPELLINGS[spelling].format(
        day=day.day,
        ordinal=f"{day.day}{_ordinal_ending(day.day)}",
        month=months[day.month],
        short_month=short_months[day.month],
        weekday=weekdays[day.weekday()],
        short_weekday=short_weekdays[day.weekday()],
        year=day.year,
        two_digits=f"{day.year % 100:02}",
        iso=day.isoformat(),
    )


def chinese(day: date, with_weekday: bool) -> str:
    """2026年3月4日, or 2026年3月4日星期三."""
    weekday = _chinese_weekdays()[day.weekday()] if with_weekday else ""
    return f"{day.year}年{day.month}月{day.day}日{weekday}"


def says_weekday(spelling: int) -> bool:
    return "weekday}" in SPELLINGS[spelling]


def is_held_out(day: date) -> bool:
    return day == SHOWN or _digest(day.isoformat())[0] < 256 * HELD_OUT


def training_pairs() -> list[tuple[str, str]]:
    """About 52,000 English and Chinese dates, in an order that is as good as random but always the same."""
    pairs = set()
    for day in (day for day in _days() if not is_held_out(day)):
        chances = _digest(day.isoformat())[1:]
        pairs |= {_pair(day, spelling) for spelling in range(len(SPELLINGS)) if chances[spelling] < 256 * USED}
    return _mixed(pairs)


def held_out_pairs() -> list[tuple[str, str]]:
    """All spellings of all days that `training_pairs` leaves out; the first few are a fair sample."""
    return _mixed({_pair(day, spelling) for day in _days() if is_held_out(day) for spelling in range(len(SPELLINGS))})


def _days() -> list[date]:
    return [FIRST + timedelta(days=n) for n in range((LAST - FIRST).days + 1)]


def _pair(day: date, spelling: int) -> tuple[str, str]:
    return spell(day, spelling), chinese(day, says_weekday(spelling))


def _mixed(pairs: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """By both texts, because the digest of the day alone says already whether it is held out."""
    return sorted(pairs, key=lambda pair: _digest(" ".join(pair)))


def _digest(text: str) -> bytes:
    """64 bytes that depend on the text alone; hash() differs between processes."""
    return hashlib.blake2b(text.encode()).digest()


def _ordinal_ending(number: int) -> str:
    if number in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


@cache
def _english_names() -> tuple[dict[int, str], dict[int, str], dict[int, str], dict[int, str]]:
    """Months from 1, weekdays from 0 for Monday; each in full and short."""
    from babel.dates import get_day_names, get_month_names

    return (
        dict(get_month_names("wide", locale="en")),
        dict(get_month_names("abbreviated", locale="en")),
        dict(get_day_names("wide", locale="en")),
        dict(get_day_names("abbreviated", locale="en")),
    )


@cache
def _chinese_weekdays() -> dict[int, str]:
    from babel.dates import get_day_names

    return dict(get_day_names("wide", locale="zh"))
