"""Figures by value: 2.5 in English is 2,5 in German, and 25 in neither.

What a figure is worth follows from the marks in it and the language around it. A figure of a source is kept if the
target has one of the same value, or the word for a small whole number.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any
from unicodedata import decimal

# Languages that write 2,5 and 2.500; all others 2.5 and 2,500.
COMMA = frozenset(
    "af az be bg bs ca cs da de el es et eu fi fo fr gl hr hu hy id is it ka kk ky lb lt lv mk nb nl nn no pl pt ro ru "
    "sk sl sq sr sv tr uk uz vi".split(" ")
)
# Those that write 2 500, and those that write the third as 3.
SPACED = frozenset("af be bg cs et fi fr hu hy ka kk ky lt lv nb nn no pl ru sk sv uk uz".split(" "))
MARKS_OF_THOUSANDS = "’'\u00a0\u202f\u2009"  # in whatever language
DIGITS = "[0-9\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\uff10-\uff19]"  # ASCII, Arabic, Indian, full width
FIGURE = re.compile(
    rf"(?P<sign>(?<![^\s(\[])[-−+](?={DIGITS}|[.,]{DIGITS}))?"
    rf"(?:{DIGITS}+(?:[.,:/’'\u00a0\u202f\u2009–-]{DIGITS}+)*|(?<![^\s(\[−+-])[.,]{DIGITS}+)"
)
HALF_DAY = re.compile(r"\s?([ap])\.?\s?m\b\.?", re.IGNORECASE)  # behind a time of day
PERCENT = re.compile(  # behind a figure
    r"\s?(?:[%％]|per ?cento?\b|prozent\b|pour ?cent\b|por ?ciento\b|por ?cento\b|procent\w*)", re.IGNORECASE
)
HOUR = re.compile(r"\s*(?:Uhr|h)\b")  # behind a time that is written with a dot
IN_SPACES = re.compile(rf"{DIGITS}{{1,3}}(?: {DIGITS}{{3}})+(?!{DIGITS})")
ORDINAL = {"en": re.compile(r"(?:st|nd|rd|th)\b"), "fr": re.compile(r"(?:er|re|e|ème)\b"), "nl": re.compile(r"e\b")}
DOTTED_ORDINALS = frozenset("bs cs da de et fi fo hr hu is lb lv nb nn no sk sl sr tr".split(" "))
HALVES_THE_DAY = ("en",)  # that count hours to twelve, twice a day
DATE = Decimal("Infinity")  # begins the reading of a date, so that none is taken for a time
PER_CENT = Decimal("0.01")  # ends the reading of a percentage
MOST_WORDS = 20  # whole numbers up to this are often written as words


@dataclass(frozen=True)
class Figure:
    """A figure in a text, and what it may be worth: a number, or several if it is a time, a date or a version.

    The first reading is the likeliest; German 5.30 can be half past five, too.
    """

    text: str
    start: int
    readings: tuple[tuple[Decimal, ...], ...]
    is_ordinal: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def figures(text: str, language: str) -> list[Figure]:
    """All of them in order, as this language writes them."""
    if not any(c.isdecimal() for c in text):  # as mostly
        return []
    base = _base(language)
    found = []
    place = 0
    dates = {date.start: date for date in _dates(text, base)}
    while match := FIGURE.search(text, place):
        date = next((date for start, date in dates.items() if start <= match.start() < date.end), None)
        if date is not None:
            found.append(date)
            place = date.end
            continue
        spaced = IN_SPACES.match(text, match.start()) if base in SPACED else None
        start, end = (spaced or match).span()
        written = text[start:end]
        readings = _readings(written.replace(" ", ""), base, bool(HOUR.match(text, end)))
        if half := HALF_DAY.match(text, end) if len(readings[0]) == 2 and ":" in written else None:
            readings, end = (_of_24_hours(readings[0], half[1]),), half.end()
        if sign := PERCENT.match(text, end):
            readings, end = tuple((*value, PER_CENT) for value in readings), sign.end()
        found.append(Figure(text[start:end], start, readings, _is_ordinal(text, end, base)))
        place = end
    return found


def missing(source: Sequence[Figure], target: str, language: str, in_words: bool = True) -> list[Figure]:
    """The source's figures that the target, in this language, has neither as a figure of this value nor as a word."""
    if not source:  # as mostly
        return []
    there = figures(target, language)
    if _base(language) in DOTTED_ORDINALS:  # 3 is not the third, while 3. Mai is May 3
        ordinals = [figure for figure in source if figure.is_ordinal]
        left = [figure.readings for figure in there if figure.is_ordinal]
        lost = [figure for figure in ordinals if not _take(figure.readings, left)]
        source = [figure for figure in source if not figure.is_ordinal]
        left += [figure.readings for figure in there if not figure.is_ordinal]
    else:
        lost, left = [], [figure.readings for figure in there]
    lost += [figure for figure in source if not (_take(figure.readings, left) or _take_parts(figure, left))]
    lost = [figure for figure in lost if not _take_year(figure, left)]
    return [figure for figure in lost if not (in_words and _has_word(figure, target, language))]


def as_written_there(source: Sequence[Figure], target: str, languages: tuple[str, str]) -> str:
    """The target with the figures that were copied as they stood, 2.5 in German, as its language writes them."""
    if not source or not any(c.isdecimal() for c in target):  # as mostly
        return target
    foreign = {figure.text: localised(figure, languages) for figure in source if not figure.is_ordinal}
    foreign = {text: written for text, written in foreign.items() if text != written}
    for figure in reversed(figures(target, languages[1]) if foreign else []):
        if figure.text in foreign:
            target = target[: figure.start] + foreign[figure.text] + target[figure.end :]
    return target


def added(source: str, target: str, languages: tuple[str, str]) -> list[Figure]:
    """The target's figures for which the source has neither figure nor word."""
    there = [figure.readings for figure in figures(source, languages[0])]
    parts = {part for readings in there for value in readings for part in value}
    new = []
    for figure in figures(target, languages[1]):
        (value, *_) = figure.readings
        if (
            not _take(figure.readings, there)
            and not set(value) <= parts
            and not _has_word(figure, source, languages[0])
        ):
            new.append(figure)
    if new and _has_months(source, languages[0]):
        new = [figure for figure in new if any(part > 12 for part in figure.readings[0])]
    return [] if not new or _has_large_words(source, languages[0]) else new


def localised(figure: Figure, languages: tuple[str, str]) -> str:
    """How the target language writes it."""
    source, target = map(_base, languages)
    text = figure.text
    (value, *_) = figure.readings
    if value[0] == DATE:
        formats = _in_words()["dates"].get(target)
        return _date(value, formats, target) if formats and target != source else text
    if value[-1] == PER_CENT:
        (sign,) = PERCENT.findall(text)[-1:]
        number = Figure(text.removesuffix(sign), figure.start, tuple(one[:-1] for one in figure.readings))
        return localised(number, languages) + ("\u00a0%" if target in COMMA else "%")
    if HALF_DAY.search(text):
        text = f"{value[0]}:{value[1]:02}" if target not in HALVES_THE_DAY else text
    elif len(value) == 1:
        sign, whole, rest, has_groups = _parts(_ascii(text).replace(" ", ""), source)
        if has_groups:
            whole = f"{int(whole):,}".replace(",", "\u00a0" if target in SPACED else "." if target in COMMA else ",")
        text = sign + (whole or "0") + (("," if target in COMMA else ".") + rest if rest else "")
    elif len(value) == 2 and source in COMMA and target not in COMMA:  # a time
        text = text.replace(".", ":")
    if figure.is_ordinal and target in DOTTED_ORDINALS:
        return f"{text}."
    return f"第{text}" if figure.is_ordinal and target in ("zh", "ja") else text


def _date(value: tuple[Decimal, ...], formats: Sequence[str], language: str) -> str:
    _, day, month, *year = value
    names = _in_words()["months"].get(language)
    name = names.split()[int(month) - 1].split("|")[0] if names else str(month)
    return formats[not year].format(day=day, month=name, year=year[0] if year else "")


def _base(language: str) -> str:
    return language.partition("-")[0]


def _ascii(written: str) -> str:
    return "".join(str(decimal(c)) if c.isdecimal() else c for c in written)


@cache
def _date_pattern(language: str) -> re.Pattern[str] | None:
    """Of day, month and perhaps year: March 4, 2026, 4. März 2026, 2026年3月4日."""
    if language in ("zh", "ja"):
        return re.compile(r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号號]")
    months = _in_words()["months"].get(language)
    if months is None:
        return None
    name = rf"(?:{'|'.join(sorted(months.replace(' ', '|').split('|'), key=len, reverse=True))})\b"
    of, suffix, year = r"(?: de)?\s+", r"(?:st|nd|rd|th|er|\.|º)?", r"(?P<{}>\d{{4}})\b"
    return re.compile(
        rf"\b(?P<m1>{name})\.? (?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?!\d|[.,:]\d)(?:,? {year.format('y1')})?"
        rf"|(?<![\d.,])(?P<d2>\d{{1,2}}){suffix}{of}(?P<m2>{name})(?:,?{of}{year.format('y2')})?",
        re.IGNORECASE if months.islower() else 0,
    )


def _dates(text: str, language: str) -> list[Figure]:
    pattern = _date_pattern(language)
    found = []
    for match in pattern.finditer(text) if pattern else ():
        groups = {key.rstrip("12"): value for key, value in match.groupdict().items() if value}
        day, month, year = (groups.get(key[0], groups.get(key)) for key in ("day", "month", "year"))
        numbered = month if month and month.isdecimal() else str(_month(month or "", language))
        date = [Decimal(part) for part in (day, numbered, year) if part]
        orders = (tuple(date), tuple(reversed(date)), (date[1], date[0], *date[2:]))
        found.append(Figure(match[0], match.start(), ((DATE, *date), *orders)))
    return found


def _month(name: str, language: str) -> int:
    months = [forms.lower().split("|") for forms in _in_words()["months"][language].split()]
    return next(number for number, forms in enumerate(months, 1) if name.lower() in forms)


def _of_24_hours(time: tuple[Decimal, ...], half: str) -> tuple[Decimal, ...]:
    """12:05 a.m. is 0:05, and 1:54 p.m. is 13:54."""
    return time[0] % 12 + (12 if half.lower() == "p" else 0), *time[1:]


def _readings(written: str, language: str, is_hour: bool) -> tuple[tuple[Decimal, ...], ...]:
    bare = _ascii(written)
    several = tuple(Decimal(part) for part in re.findall(r"\d+", bare))
    if ":" in bare and any(len(part) != 2 for part in re.split(r"\D+", bare)[1:]):
        return ((*several, Decimal(-1)),)  # minutes have two figures: this is no time
    if ":" in bare or "/" in bare or _is_composite(bare):
        return (several,)
    sign, whole, rest, _ = _parts(bare, language)
    number = Decimal(f"{'-' if sign in '-−' and sign else ''}{whole or '0'}.{rest or '0'}").normalize()
    if is_hour and language in COMMA and re.fullmatch(r"([01]?\d|2[0-4])\.[0-5]\d", bare):
        return (several,)
    return ((number,),)


def _is_composite(bare: str) -> bool:
    """A date, a version or an address: several marks that do not set thousands apart."""
    body = bare.lstrip("+-−")
    if re.search("[–-]", body):  # from one to another
        return True
    marks = re.findall(r"\D", body)
    parts = re.split(r"\D", body)
    if len(marks) < 2:
        return False
    groups = parts[1:] if len(set(marks)) == 1 else parts[1:-1]
    are_thousands = all(len(part) == 3 for part in groups) and 1 <= len(parts[0]) <= 3
    return not are_thousands or len(set(marks[:-1])) > 1


def _parts(bare: str, language: str) -> tuple[str, str, str, bool]:
    """Sign, digits before and behind the decimal mark, and whether thousands were set apart."""
    sign = bare[0] if bare[0] in "+-−" else ""
    body = re.sub(f"[{MARKS_OF_THOUSANDS}]", "", bare.removeprefix(sign))
    has_groups = len(body) < len(bare.removeprefix(sign))
    marks = re.findall("[.,]", body)
    if not marks:
        return sign, re.sub(r"\D", "", body), "", has_groups
    last, point = marks[-1], "," if language in COMMA else "."
    whole, rest = body.rsplit(last, 1)
    # A mark that comes once before three digits is what the language says; else a mark that comes once is the decimal.
    are_thousands = len(rest) == 3 and len(set(marks)) == 1 and (len(marks) > 1 or last != point) and whole[:1] != "0"
    if are_thousands:
        return sign, re.sub(r"\D", "", whole + rest), "", True
    return sign, re.sub(r"\D", "", whole), re.sub(r"\D", "", rest), has_groups or len(marks) > 1


def _take(readings: tuple[tuple[Decimal, ...], ...], left: list[tuple[tuple[Decimal, ...], ...]]) -> bool:
    """Take the first of those left that can mean the same."""
    found = next((place for place, others in enumerate(left) if set(readings) & set(others)), None)
    if found is not None:
        del left[found]
    return found is not None


def _take_parts(figure: Figure, left: list[tuple[tuple[Decimal, ...], ...]]) -> bool:
    """Whether several figures of the target are the parts of this one: 5:30 is 5 Uhr 30, 4/3/2026 is 2026年3月4日."""
    several = next((value for value in figure.readings if len(value) > 1 and value[0] != DATE), ())
    if several[-1:] == (PER_CENT,):
        return False
    rest = list(left)
    if not several or not all(_take(((part,),), rest) or not part for part in several):  # no minutes need not be said
        return False
    left[:] = rest
    return True


def _take_year(figure: Figure, left: list[tuple[tuple[Decimal, ...], ...]]) -> bool:
    """Whether a year of four figures is there for one of two: 26 in 2026."""
    (value, *_) = figure.readings
    years = [others for others in left if len(others[0]) == 1 and 1000 <= others[0][0] < 2100]
    found = next((year for year in years if len(figure.text) == 2 and year[0][0] % 100 == value[0]), None)
    if found is not None:
        left.remove(found)
    return found is not None


def _is_ordinal(text: str, end: int, language: str) -> bool:
    if language in DOTTED_ORDINALS:
        return bool(re.match(r"\.(?=\s+[^\W\d_])", text[end:]))
    return language in ORDINAL and bool(ORDINAL[language].match(text, end))


def _has_word(figure: Figure, target: str, language: str) -> bool:
    """Whether the target has the word for a small whole number; of a language without a list it may have one."""
    (value, *others) = figure.readings[0]
    if others or value != value.to_integral_value() or not 0 <= value <= MOST_WORDS:
        return False
    base = _base(language)
    words = _in_words()["words"]
    if base not in words:
        return value < 10
    forms = words[base].split()[int(value)].split("|")
    if base in ("zh", "ja"):
        return any(form in target for form in forms)
    if figure.is_ordinal and base == "de":  # zwölf is not zwölfter
        stems = (form.rstrip("*") for form in forms)
        ends = (stem + ("" if stem.endswith("t") else "s?t") for stem in stems)
        return bool(re.search(rf"\b(?:{'|'.join(ends)})e[mnrs]?\b", target, re.IGNORECASE))
    patterns = (re.escape(form.rstrip("*")) + ("" if form.endswith("*") else r"\b") for form in forms)
    return bool(re.search(rf"\b(?:{'|'.join(patterns)})", target, re.IGNORECASE))


def _has_months(source: str, language: str) -> bool:
    names = _in_words()["months"].get(_base(language), "").replace(" ", "|")
    return bool(names and re.search(rf"\b(?:{names})\b", source))


def _has_large_words(source: str, language: str) -> bool:
    """Whether numbers in words may stand behind a target's figures; who knows, of a language without a list."""
    large = _in_words()["large"].get(_base(language))
    return large is None or bool(re.search(large, source, re.IGNORECASE))


@cache
def _in_words() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files(__package__) / "numbers.toml").read_text(encoding="utf-8"))
