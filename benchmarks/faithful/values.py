"""Which numbers a text has as its language writes them: figures by babel, times by its parse_time, words by tables.

A figure that babel does not take in strict form (2.5 in German, where it is 2,5) is no number here. `judge` says what
is wrong with a translation of a number, or nothing.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from functools import lru_cache

from babel.dates import parse_time
from babel.numbers import NumberFormatError, parse_decimal

# A figure; a space or an apostrophe separates only groups of three.
GROUPED = r"\d{1,3}(?:[ \u00a0\u202f\u2009'’]\d{3})+(?![\d])(?:[.,]\d+)?"
FIGURE = re.compile(rf"{GROUPED}|\d+(?:[.,]\d+)*")
MINUS = "-−–‑"


@dataclass(frozen=True)
class Wanted:
    """A number that was put into a sentence; what counts of the fields depends on the kind."""

    kind: str
    written: str  # as it stands in the source
    values: tuple[Decimal, ...] = ()
    clock: time | None = None
    half: str = ""  # am, pm or nothing
    day: date | None = None


@dataclass(frozen=True)
class Number:
    value: Decimal
    start: int
    end: int
    is_figure: bool


# -- numbers -----------------------------------------------------------------------------------------------------------


def numbers(text: str, language: str) -> list[Number]:
    """Figures and number words, in order, with their sign."""
    found = [*figures(text, language), *NUMBER_WORDS[language](text)]
    return [_signed(text, one) for one in sorted(found, key=lambda one: one.start)]


def figures(text: str, language: str) -> list[Number]:
    found = []
    for match in FIGURE.finditer(text):
        value = figure(match[0], language)
        if value is None:
            continue
        end = match.end()
        scale = re.compile(r"\s*([百千万萬亿億]+)").match(text, end) if language == "zh" else None
        if scale:
            end = scale.end()
            for sign in scale[1]:
                value *= CHINESE_SCALES[sign]
        million = re.compile(r"\s*Million(en)?\b").match(text, end) if language == "de" else None
        if million:
            value, end = value * 1_000_000, million.end()
        half = re.compile(r"\s*[个個]半").match(text, end) if language == "zh" else None
        found.append(Number(value + Decimal("0.5") if half else value, match.start(), end, True))
    return found


def figure(written: str, language: str) -> Decimal | None:
    """What a reader of the language takes it for; none if it is not written as the language writes."""
    plain = re.sub(r"[ \u00a0\u202f\u2009'’]", "", written)
    try:
        return parse_decimal(plain, locale=language, strict=True)
    except NumberFormatError:
        return None


def _signed(text: str, one: Number) -> Number:
    before = text[: one.start]
    is_minus = re.search(rf"(^|[\s(„\"“，。、：]|[\u4e00-\u9fff])[{MINUS}]\s?$", before) or re.search(
        r"\b(minus|Minus)\s$|(零下|负|負)$", before
    )
    return Number(-one.value if is_minus else one.value, one.start, one.end, one.is_figure)


# -- number words ------------------------------------------------------------------------------------------------------

GERMAN = {
    word: value
    for value, word in enumerate(
        [
            "null",
            "ein",
            "zwei",
            "drei",
            "vier",
            "fünf",
            "sechs",
            "sieben",
            "acht",
            "neun",
            "zehn",
            "elf",
            "zwölf",
            "dreizehn",
            "vierzehn",
            "fünfzehn",
            "sechzehn",
            "siebzehn",
            "achtzehn",
            "neunzehn",
        ]
    )
} | {"zwo": 2, "eins": 1, "dreissig": 30}
GERMAN |= {
    word: 10 * value
    for value, word in enumerate(
        ["zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"], 2
    )
}
GERMAN_ONES = ("eine", "einen", "einem", "einer", "eines")
GERMAN_HALVES = {"anderthalb": "1.5", "eineinhalb": "1.5", "halb": "0.5", "halbe": "0.5", "halben": "0.5"}
GERMAN_OTHERS = {"dutzend": 12, "million": 1_000_000, "beide": 2, "beiden": 2}
GERMAN_FIRST = {"erst": 1, "dritt": 3, "siebt": 7, "acht": 8}
ENGLISH = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
ENGLISH |= {
    word: 10 * value
    for value, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
}
ENGLISH_OTHERS = {"a": 1, "an": 1, "hundred": 100, "thousand": 1000, "million": 1_000_000, "dozen": 12, "noon": 12}
ENGLISH_OTHERS |= {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "once": 1, "twice": 2, "both": 2}
ENGLISH_OTHERS |= {"pair": 2, "couple": 2, "midnight": 0, "half": 30, "quarter": 15}
CHINESE = {
    sign: value
    for value, signs in enumerate(["零〇", "一", "二两兩", "三", "四", "五", "六", "七", "八", "九"])
    for sign in signs
}
CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000, "亿": 10**8, "億": 10**8}
CHINESE_NUMBER = re.compile("[零〇一二两兩三四五六七八九十百千万萬亿億]+")


@lru_cache(4096)
def german(word: str) -> int | None:
    """zweitausendfünfhundertdreiundzwanzig is 2523."""
    if word in GERMAN:
        return GERMAN[word]
    for part, scale in (("tausend", 1000), ("hundert", 100)):
        if part in word:
            left, _, right = word.partition(part)
            before, after = german(left) if left else 1, german(right.removeprefix("und")) if right else 0
            return None if before is None or after is None else before * scale + after
    left, link, right = word.partition("und")
    units, tens = GERMAN.get(left), GERMAN.get(right)
    return units + tens if link and units is not None and tens is not None and units < 10 <= tens else None


def _german_numbers(text: str) -> list[Number]:
    found = []
    for match in re.finditer(r"[^\W\d_]+", text):
        word = match[0].lower()
        value: Decimal | int | None = 1 if word in GERMAN_ONES else german(word)
        half = re.fullmatch(r"(.+?)(?:und)?einhalb", word)
        if word in GERMAN_HALVES:
            value = Decimal(GERMAN_HALVES[word])
        elif word in GERMAN_OTHERS:
            value = GERMAN_OTHERS[word]
        elif half and german(half[1]) is not None:
            value = Decimal(german(half[1]) or 0) + Decimal("0.5")
        if value is not None:
            found.append(Number(Decimal(value), match.start(), match.end(), False))
    # "drei Komma fünf", "vier Millionen"
    for match in re.finditer(r"(\w+) [Kk]omma (\w+)", text):
        whole, part = german(match[1].lower()), german(match[2].lower())
        if whole is not None and part is not None:
            found.append(Number(Decimal(f"{whole}.{part}"), match.start(), match.end(), False))
    return found


def chinese(written: str) -> int:
    """两千五百 is 2500, 一九八七 is 1987."""
    if len(written) > 1 and all(sign in CHINESE for sign in written):
        return int("".join(str(CHINESE[sign]) for sign in written))
    total = section = digit = 0
    for sign in written:
        if sign in CHINESE:
            digit = CHINESE[sign]
        elif CHINESE_SCALES[sign] >= 10_000:
            total, section, digit = total + (section + digit or 1) * CHINESE_SCALES[sign], 0, 0
        else:
            section, digit = section + (digit or 1) * CHINESE_SCALES[sign], 0
    return total + section + digit


def _chinese_numbers(text: str) -> list[Number]:
    found = []
    for match in CHINESE_NUMBER.finditer(text):
        value, end = Decimal(chinese(match[0])), match.end()
        point = re.compile("点([零〇一二三四五六七八九]+)").match(text, end)
        if point and not re.compile("[分半]").match(text, point.end()):
            digits = "".join(str(CHINESE[sign]) for sign in point[1])
            value, end = Decimal(f"{value}.{digits}"), point.end()
        elif re.compile("[个個天小]?半").match(text, end) and text[end : end + 1] in "个個":
            value += Decimal("0.5")
        found.append(Number(value, match.start(), end, False))
    return found


def _english_numbers(text: str) -> list[Number]:
    found = []
    for match in re.finditer(r"[A-Za-z]+(?:-[A-Za-z]+)?", text):
        left, _, right = match[0].lower().partition("-")
        value = ENGLISH.get(left, ENGLISH_OTHERS.get(left))
        if value is not None:
            value += ENGLISH.get(right, 0)
            found.append(Number(Decimal(value), match.start(), match.end(), False))
    return found


NUMBER_WORDS: dict[str, Callable[[str], list[Number]]] = {
    "de": _german_numbers,
    "zh": _chinese_numbers,
    "en": _english_numbers,
}

# -- times, ordinals, dates --------------------------------------------------------------------------------------------

AFTERNOON = {"de": r"nachmittag|abend|\bnachts|p\.?\s?m\b", "zh": "下午|晚上|傍晚|中午|夜", "en": r"p\.?m\b"}
MORNING = {"de": r"morgen|vormittag|früh|\bnachts|a\.?\s?m\b", "zh": "早上|上午|凌晨|清晨|早晨", "en": r"a\.?m\b"}
CLOCK = re.compile(r"(?<![\d:.,])(\d{1,2}[:：]\d{2})(?![\d:])|(?<![\d:.,])(\d{1,2}\.\d{2})(?=\s?Uhr)")
HOUR_WORDS = {"de": r"(?P<hour>\d{1,2}|[a-zäöüß]+)", "zh": r"(?P<hour>\d{1,2}|[零一二两三四五六七八九十]+)"}
MONTHS = {
    "de": [
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ],
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
}


def times(text: str, language: str) -> list[time]:
    """Times of the day as they are written; halves of the day are not looked at."""
    found = []
    for match in CLOCK.finditer(text):
        written = (match[1] or match[2]).replace("：", ":")
        try:
            found.append(parse_time(written, locale=language))
        except ValueError:
            continue
    hour = HOUR_WORDS.get(language)
    if language == "de":
        for match in re.finditer(
            rf"\b{hour}\s?(?:Uhr|h)\b(?:\s(?P<minute>\d{{1,2}}|[a-zäöüß]+))?", text, re.IGNORECASE
        ):
            minute = _small(match["minute"] or "null", language)
            found += _time(_small(match["hour"], language), 0 if minute is None else minute)
        for word, shift in (("halb", -30), ("viertel nach", 15), ("viertel vor", -15), ("dreiviertel", -15)):
            for match in re.finditer(rf"\b{word}\s{hour}\b", text, re.IGNORECASE):
                whole = _small(match["hour"], language)
                found += _time(None if whole is None else whole + (shift < 0) * -1, shift % 60)
    if language == "zh":
        for match in re.finditer(
            rf"{hour}\s?[点點时時](?:(?P<half>半)|(?P<quarter>[一三])刻|(?P<minute>\d{{1,2}}|[零一二三四五六七八九十]+)分?)?",
            text,
        ):
            minute = 30 if match["half"] else {"一": 15, "三": 45, None: None}[match["quarter"]]
            if minute is None:
                minute = _small(match["minute"] or "零", language)
            found += _time(_small(match["hour"], language), minute)
    return found


def _time(hour: int | None, minute: int | None) -> list[time]:
    return [time(hour % 24, minute)] if hour is not None and minute is not None and hour <= 24 and minute < 60 else []


def _small(written: str, language: str) -> int | None:
    if written.isdigit():
        return int(written)
    if language == "zh":
        return chinese(written)
    return 1 if written.lower() in (*GERMAN_ONES, "eins") else german(written.lower())


def ordinals(text: str, language: str) -> list[int]:
    """Of 3. and dritte, 第3 and 第三, and of days: 3日, 3号."""
    if language == "zh":
        number = r"(\d+|[零一二三四五六七八九十百]+)"
        found = re.findall(rf"第\s?{number}|{number}\s?[日号號]", text)
        return [int(one) if one.isdigit() else chinese(one) for pair in found for one in pair if one]
    if language == "en":
        return [int(one) for one in re.findall(r"\b(\d+)(?:st|nd|rd|th)\b", text)]
    # A full stop at the end of a sentence is an ordinal's only behind an article.
    article = r"\b(?:[Dd](?:er|ie|as|en|em|es)|[Aa]m|[Ii]m|[Vv]om|[Zz]um|[Zz]ur)\s"
    followed = rf"(?<![\d.,])(\d+)\.(?=\s*[a-zäöü]|\s[^\W\d]|[)“\"])|{article}(\d+)\."
    values = [int(one) for pair in re.findall(followed, text) for one in pair if one]
    for word in re.findall(r"\b([^\W\d_]+?)e[nrsm]?\b", text.lower()):
        stem = word.removesuffix("st") if word.endswith("st") and word != "erst" else word.removesuffix("t")
        value = GERMAN_FIRST.get(word, german(stem) if stem != word else None)
        values += [] if value is None else [value]
    values += [int(one) for one in re.findall(r"\b(\d+)(?:te|ste)[nrsm]?\b", text)]
    return values


def dates(text: str, language: str) -> list[tuple[int | None, int, int]]:
    """Year if it is there, month, day."""
    found = [(int(y), int(m), int(d)) for y, m, d in re.findall(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)", text)]
    more: list[tuple[int | None, int, int]] = [*found]
    if language == "zh":
        number = r"(\d+|[〇零一二三四五六七八九十]+)"
        for year, month, day in re.findall(rf"(?:{number}\s?年\s?)?{number}\s?月\s?{number}\s?[日号號]?", text):
            more.append((_small(year, "zh") if year else None, _small(month, "zh") or 0, _small(day, "zh") or 0))
    if language == "de":
        for day, name, year in re.findall(
            rf"(?<![\d.])(\d{{1,2}})\.?\s?({'|'.join(MONTHS['de'])})\b(?:\s(\d{{4}})\b)?", text
        ):
            more.append((int(year) if year else None, MONTHS["de"].index(name) + 1, int(day)))
        # Not as German writes it, but nobody takes it for another day.
        for name, day, year in re.findall(
            rf"\b({'|'.join(MONTHS['de'])})\s(\d{{1,2}})\b(?![.:]\d)\.?,?(?:\s(\d{{4}})\b)?", text
        ):
            more.append((int(year) if year else None, MONTHS["de"].index(name) + 1, int(day)))
        for day, month, year in re.findall(r"(?<![\d.])(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})(?!\d)", text):
            more.append((int(year), int(month), int(day)))
    return more


# -- the judge ---------------------------------------------------------------------------------------------------------


def judge(wanted: Wanted, source: str, target: str, language: str) -> str:
    """What is wrong with the number in a translation of the source; nothing if it is right."""
    if not RIGHT[wanted.kind](wanted, target, language):
        return f"{wanted.written} is not there"
    return surplus(wanted, source, target, language)


def surplus(wanted: Wanted, source: str, target: str, language: str) -> str:
    """A figure of the target that the source has in no way."""
    allowed = {one.value for one in numbers(source, "en")} | {abs(value) for value in wanted.values} | {Decimal(1)}
    runs = {run.lstrip("0") for run in re.findall(r"\d+", source)} | {str(value) for value in allowed}
    if wanted.clock:
        runs |= {str(wanted.clock.hour), str((wanted.clock.hour + 12) % 24), str(wanted.clock.hour % 12 or 12)}
    for month, name in enumerate(MONTHS["en"], 1):
        runs |= {str(month)} if name in source else set()
    for match in FIGURE.finditer(target):
        value = figure(match[0], language)
        if value is not None and value in allowed:
            continue
        if [one.value for one in figures(target, language) if one.start == match.start() and one.value in allowed]:
            continue  # 1万
        # A separator that changed the value is no excuse: only figures without one are taken apart.
        pieces = re.findall(r"\d+", match[0])
        if wanted.kind in LITERAL and match[0] in wanted.written:
            continue
        if (len(pieces) == 1 or wanted.kind in ("date", "time")) and all(
            one.lstrip("0") in runs | {""} for one in pieces
        ):
            continue
        return f"{match[0]} is not in the source"
    return ""


def _has_value(wanted: Wanted, target: str, language: str) -> bool:
    there = [one.value for one in numbers(target, language)]
    return all(value in there for value in wanted.values)


def _has_percent(wanted: Wanted, target: str, language: str) -> bool:
    for one in numbers(target, language):
        after = re.match(r"\s?(%|％|Prozent|-?prozentig|percent|per cent|个百分点)", target[one.end :])
        before = re.search(r"百分之$", target[: one.start])
        if one.value == wanted.values[0] and (after or before):
            return True
    return False


def _has_range(wanted: Wanted, target: str, language: str) -> bool:
    """Both ends in order; a sign between them is no minus."""
    there = [abs(one.value) for one in numbers(target, language)]
    low, high = wanted.values
    return low in there and high in there[there.index(low) + 1 :]


def _has_time(wanted: Wanted, target: str, language: str) -> bool:
    """On a face of twelve hours; if the source says which half of the day, the target must not say the other."""
    assert wanted.clock
    clock = wanted.clock
    for one in times(target, language):
        if (one.hour % 12, one.minute) != (clock.hour % 12, clock.minute):
            continue
        if not wanted.half:
            # 17:45 may be a quarter to six in the afternoon, 5:30 stays 5:30 or gets its half of the day.
            return True
        is_late = one.hour >= 12 or bool(re.search(AFTERNOON[language], target, re.IGNORECASE))
        is_early = one.hour < 12 and not is_late
        return is_late if wanted.half == "pm" else is_early or bool(re.search(MORNING[language], target, re.IGNORECASE))
    return False


def _has_ordinal(wanted: Wanted, target: str, language: str) -> bool:
    return int(wanted.values[0]) in ordinals(target, language)


def _has_date(wanted: Wanted, target: str, language: str) -> bool:
    assert wanted.day
    year = wanted.day.year if wanted.day.year > 1 else None
    there = dates(target, language)
    return any((month, day) == (wanted.day.month, wanted.day.day) and found == year for found, month, day in there)


def _has_literal(wanted: Wanted, target: str, language: str) -> bool:
    """Unchanged, and no part of something longer."""
    return bool(re.search(rf"(?<![\d.\-]){re.escape(wanted.written)}(?![\d\-]|\.\d)", target)) and bool(language)


LITERAL = ("version", "phone")
RIGHT: dict[str, Callable[[Wanted, str, str], bool]] = {
    **dict.fromkeys(("small", "large", "thousands", "decimal", "money", "year", "negative"), _has_value),
    "percent": _has_percent,
    "range": _has_range,
    "time": _has_time,
    "ordinal": _has_ordinal,
    "date": _has_date,
    **dict.fromkeys(LITERAL, _has_literal),
}
