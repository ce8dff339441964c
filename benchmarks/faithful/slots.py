"""Numbers of all kinds, drawn into test sentences where these have a number, a time or a date, or could have one."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal

from benchmarks.faithful.values import MONTHS, Wanted

SMALL = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|twenty|thirty|forty|forty-five|fifty"
COUNT = rf"(?:\b(?:{SMALL}|a few|several|many)\b|(?<![\d:,.$€-])\d{{1,3}}(?![\d:,.%]|st|nd|rd|th))"
UNIT = "hours|minutes|seconds|days|weeks|months|meters|metres|kilometers|miles|pounds|dollars|centimeters|degrees|yen"
WHEN = r"\b(?:tomorrow|yesterday|today|tonight|soon)(?=[.?!]$)"
# A word before a count, or a number that it would be part of, makes the sentence one that nobody would say.
NEVER_BEFORE = re.compile(r"\b(?:as|so|too|how|quite|very|not|to|or|a|about the)\s$", re.IGNORECASE)

# Behind a sentence, where the tests have too few places.
BEHIND = {"time": " at {}", "year": " in {}", "date": " on {}"}
LONGEST = 25  # words of a sentence; of one with something behind it half as many
TRIES = 20  # for each number: a kind with few values and places may have fewer sentences than were asked for

# Where a number of each kind fits: patterns whose match in a test sentence is replaced.
PLACES: dict[str, list[tuple[str, str]]] = {
    "small": [(rf"{COUNT}(?= (?:\w+ )?\w+s\b)", "{}")],
    "large": [(rf"{COUNT}(?= (?:\w+ )?\w+s\b)(?! years old)", "{}")],
    "thousands": [(rf"{COUNT}(?= (?:\w+ )?\w+s\b)(?! years old)", "{}")],
    "decimal": [(rf"{COUNT}(?= (?:{UNIT})\b)", "{}")],
    "range": [(rf"{COUNT}(?= (?:\w+ )?\w+s\b)", "{}")],
    "money": [(r"[$€]\d+(?:\.\d+)?|\b\w+ dollars\b", "{}")],
    "percent": [(r"\d+%|\b(?:half|most)(?= of the)", "{}")],
    "time": [
        (r"\b\d{1,2}:\d{2}(?: [ap]\.m\.)?", "{}"),
        (rf"(?<=\bat )(?:{SMALL})\b(?: o'clock|(?=[.,?!]))", "{}"),
        (WHEN, "at {}"),
    ],
    "year": [(r"(?<=\b[Ii]n )\d{4}\b|(?<=\bsince )\d{4}\b", "{}"), (WHEN, "in {}")],
    "date": [(rf"\b(?:{'|'.join(MONTHS['en'])}) \d{{1,2}}(?:, \d{{4}})?", "{}"), (WHEN, "on {}")],
    "ordinal": [(r"(?<=[Tt]he )(?:first|second|third|next|last)\b(?= \w)", "{}")],
    "negative": [],
    "version": [],
    "phone": [(r"\b\d{3,4}-\d{4}\b", "{}")],
}
# The tests' own wording with another noun or number in it, for kinds that the tests hardly have.
SENTENCES: dict[str, list[str]] = {
    "small": ["I need {} books.", "He is {} years old.", "Tom has {} children.", "She bought {} eggs."],
    "large": ["There are {} students in this school.", "He must be at least {} years old.", "The book has {} pages."],
    "thousands": ["He earns {} dollars a month.", "More than {} people came.", "The town has {} inhabitants."],
    "decimal": [
        "I need {} hours.", "He is {} meters tall.", "The wall is {} meters thick.", "It weighs {} pounds.",
        "We walked {} miles.", "The pond is {} meters deep.", "I drank {} liters of water.",
    ],
    "range": ["It takes {} minutes.", "We have to wait {} days.", "You should read {} pages a day."],
    "money": ["I paid {} for it.", "It costs {}.", "He gave me {}.", "This book is {}.", "Tom owes me {}."],
    "percent": [
        "The surface of the earth is {} water.", "About {} of the people live here.", "Prices went up by {}.",
        "I agree {}.", "Tom got {} of the votes.",
    ],
    "time": ["I get up at {}.", "We met at {}.", "She was supposed to call him at {}.", "The meeting begins at {}."],
    "year": ["He was born in {}.", "The war ended in {}.", "Tom has been here since {}."],
    "date": ["My birthday is on {}.", "They attacked the town on {}.", "I will see him on {}."],
    "ordinal": ["She lives on the {} floor.", "This is my {} visit.", "It is his {} birthday.", "He was the {} to go."],
    "negative": [
        "The temperature is {} degrees.", "It was {} degrees this morning.", "It is {} degrees outside.",
        "At {} degrees the river freezes.",
    ],
    "version": ["Please use version {}.", "I have installed version {}.", "Version {} is out."],
    "phone": ["The number is {}.", "My phone number is {}.", "Call me at {}.", "Please call {} if you need help."],
}  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A sentence with a number in it."""

    text: str
    wanted: Wanted


def draw(sources: list[str], many: int, seed: int) -> list[Drawn]:
    """So many, of all kinds alike, from the sentences as far as they have places; no sentence with its number twice."""
    found: list[Drawn] = []
    seen: set[str] = set()
    for turn, kind in enumerate(PLACES):
        chance = random.Random(f"{kind} {seed}")
        share = (many * (turn + 1)) // len(PLACES) - len(found)
        own = sorted({one for text in sources for one in _opened(text, kind) if len(one.split()) <= LONGEST})
        if kind in BEHIND and len(own) < share // 2:
            short = [text for text in sources if len(text.split()) <= LONGEST // 2 and not re.search(r"\d|[{}]", text)]
            own += [text[:-1] + BEHIND[kind] + text[-1] for text in short if text[-1] in ".?!"]
        chance.shuffle(own)
        frames = [*SENTENCES[kind], *own[: max(share // 2, len(SENTENCES[kind]))]]
        chance.shuffle(frames)
        tries = 0
        while share and tries < TRIES * many:
            frame = frames[tries % len(frames)]
            tries += 1
            wanted = KINDS[kind](chance)
            text = frame.format(wanted.written).replace(".m..", ".m.")
            if text not in seen:
                seen.add(text)
                found.append(Drawn(text, wanted))
                share -= 1
    return found


def _opened(text: str, kind: str) -> list[str]:
    """The sentence with {} in place of the first thing that a number of this kind can stand for."""
    if "{" in text or "}" in text:
        return []
    for pattern, instead in PLACES[kind]:
        match = re.search(pattern, text, re.IGNORECASE)
        if match and not NEVER_BEFORE.search(text[: match.start()]):
            opened = text[: match.start()] + instead + text[match.end() :]
            # A number that is left in the sentence would make it unclear which one is judged.
            return [] if re.search(r"\d", opened) else [opened]
    return []


def _small(chance: random.Random) -> Wanted:
    value = chance.randint(2, 12)
    return Wanted("small", str(value), (Decimal(value),))


def _large(chance: random.Random) -> Wanted:
    value = chance.randint(13, 999)
    return Wanted("large", str(value), (Decimal(value),))


def _thousands(chance: random.Random) -> Wanted:
    value = chance.choice(
        [chance.randint(1_000, 9_999), chance.randint(1, 99) * 500 + 10_000, chance.randint(10**6, 10**7)]
    )
    return Wanted("thousands", f"{value:,}", (Decimal(value),))


def _decimal(chance: random.Random) -> Wanted:
    digits = chance.choice([1, 1, 2, 2, 3])
    value = Decimal(chance.randint(1, 40 * 10**digits)).scaleb(-digits)
    return Wanted("decimal", f"{value:.{digits}f}", (value,))


def _range(chance: random.Random) -> Wanted:
    low = chance.randint(2, 40)
    high = low + chance.randint(1, 20)
    return Wanted(
        "range", chance.choice(["{}-{}", "{}–{}", "{} to {}"]).format(low, high), (Decimal(low), Decimal(high))
    )


def _money(chance: random.Random) -> Wanted:
    value = (
        Decimal(chance.randint(101, 20_000)).scaleb(-2) if chance.random() < 0.6 else Decimal(chance.randint(2, 5_000))
    )
    return Wanted("money", chance.choice(["${}", "€{}", "{} dollars", "{} euros"]).format(f"{value:,}"), (value,))


def _percent(chance: random.Random) -> Wanted:
    value = Decimal(chance.randint(1, 100)) if chance.random() < 0.6 else Decimal(chance.randint(1, 999)).scaleb(-1)
    return Wanted("percent", chance.choice(["{}%", "{}%", "{} percent"]).format(value), (value,))


def _time(chance: random.Random) -> Wanted:
    hour, minute = chance.randint(1, 23), chance.choice([0, 15, 30, 45, *range(5, 60, 7)])
    half = chance.choice(["", "", "am", "pm"]) if 1 <= hour <= 12 else ""
    clock = time(hour % 12 + 12 * (half == "pm") if half else hour, minute)
    return Wanted("time", f"{hour}:{minute:02}" + (f" {half[0]}.m." if half else ""), clock=clock, half=half)


def _year(chance: random.Random) -> Wanted:
    value = chance.randint(1500, 2039)
    return Wanted("year", str(value), (Decimal(value),))


def _date(chance: random.Random) -> Wanted:
    day = date(chance.randint(1800, 2039), chance.randint(1, 12), chance.randint(1, 28))
    way = chance.choice(["iso", "long", "long", "short"])
    name = f"{MONTHS['en'][day.month - 1]} {day.day}"
    if way == "short":
        return Wanted("date", name, day=day.replace(year=1))
    return Wanted("date", day.isoformat() if way == "iso" else f"{name}, {day.year}", day=day)


def _ordinal(chance: random.Random) -> Wanted:
    value = chance.randint(1, 31)
    ending = "th" if 10 <= value % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return Wanted("ordinal", f"{value}{ending}", (Decimal(value),))


def _negative(chance: random.Random) -> Wanted:
    value = Decimal(-chance.randint(1, 40)) if chance.random() < 0.7 else Decimal(-chance.randint(1, 399)).scaleb(-1)
    return Wanted("negative", str(value), (value,))


def _version(chance: random.Random) -> Wanted:
    return Wanted("version", ".".join(str(chance.randint(0, 20)) for _ in range(3)))


def _phone(chance: random.Random) -> Wanted:
    return Wanted(
        "phone",
        chance.choice(
            [f"555-0{chance.randint(100, 199)}", f"{chance.randint(2000, 9999)}-{chance.randint(1000, 9999)}"]
        ),
    )


KINDS: dict[str, Callable[[random.Random], Wanted]] = {
    "small": _small, "large": _large, "thousands": _thousands, "decimal": _decimal, "range": _range, "money": _money,
    "percent": _percent, "time": _time, "year": _year, "date": _date, "ordinal": _ordinal, "negative": _negative,
    "version": _version, "phone": _phone,
}  # fmt: skip
