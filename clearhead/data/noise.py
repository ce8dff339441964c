"""Texts as they also come: mistyped, in capitals, without marks, nonsense, in another language, of another domain.

Each kind of noise is a function of a text and a random generator. `noisy` makes the generator of the seed, the epoch
and the place of the pair, so that the same pair is changed alike whoever asks, and otherwise in the next epoch.
"""

import random
import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .foreign import foreign_lines

Change = Callable[[str, random.Random], str]

KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
TYPOS_PER_LETTER = 0.02, 0.12  # of a mistyped text, from careful to hasty; at least one
STRANGE = 0.1, 0.6  # the share of the words that a text of another domain has and the corpus has not
WORD = re.compile(r"\w+")
FINAL = re.compile(r"[.!?…。！？]+\s*$")
CONTEXT = 2  # letters that the next one of an invented word depends on
LONGEST_WORD = 14  # letters of an invented word


@dataclass(frozen=True)
class Noise:
    """What it does to a source, and whether the target that the pair has is still a right one."""

    change: Change
    keeps_target: bool


def typos(text: str, rng: random.Random) -> str:
    """Letters swapped, dropped, doubled, or the key beside hit instead."""
    letters = list(text)
    places = [i for i, letter in enumerate(letters) if letter.isalpha()]
    if not places:
        return text
    wanted = max(1, round(len(places) * rng.uniform(*TYPOS_PER_LETTER)))
    for place in sorted(rng.sample(places, min(wanted, len(places))), reverse=True):
        how = rng.randrange(4)
        if how == 0 and place + 1 < len(letters):
            letters[place : place + 2] = reversed(letters[place : place + 2])
        elif how == 1 and len(letters) > 1:
            del letters[place]
        elif how == 2:
            letters.insert(place, letters[place])
        else:
            letters[place] = _key_beside(letters[place], text, rng)
    return "".join(letters)


def capitals(text: str, rng: random.Random) -> str:
    """All in capitals, Each Word With One, all small, or only the first letter."""
    return rng.choice((str.upper, _title, str.lower, _small_start))(text)


def marks(text: str, rng: random.Random) -> str:
    """Without its final mark or with it twice, a space too many or one forgotten."""
    kind = rng.randrange(4)
    if kind == 0 and FINAL.search(text):
        return FINAL.sub("", text)
    if kind == 1 and text:
        return text + text[-1] if FINAL.search(text) else text + rng.choice(".!?")
    spaces = [i for i, letter in enumerate(text) if letter == " "]
    if not spaces:
        return text + " ."
    place = rng.choice(spaces)
    return text[:place] + ("  " if kind == 2 else "") + text[place + 1 :]


def nonsense(texts: Sequence[str], pieces: Sequence[str] = ()) -> Change:
    """A text of about the same length that says nothing: random letters or parts of words, keys mashed, or pieces.

    A piece of a vocabulary that begins a word begins with a space.
    """
    letters = sorted({letter for text in texts for letter in text if letter.isalpha()}) or list(KEYBOARD[0])
    vocabulary = sorted({word for text in texts for word in WORD.findall(text)}) or letters

    def change(text: str, rng: random.Random) -> str:
        makers = (
            lambda: "".join(rng.choices(letters, k=rng.randint(2, 9))),
            lambda: "".join(_bit(rng.choice(vocabulary), rng) for _ in range(rng.randint(1, 4))),
            lambda: _mashed(rng),
            lambda: _shuffled(rng.choice(vocabulary), rng),
        )
        place = rng.randrange(len(makers) + bool(pieces))
        if place == len(makers):
            return "".join(rng.choices(pieces, k=2 * _words(text, rng))).strip()
        make = makers[place]
        return " ".join(make() for _ in range(_words(text, rng))) + rng.choice(("", ".", "?", ""))

    return change


def another_language(language: str) -> Change:
    """A sentence in another language than this one, as it is, some of its words, or words that look like them."""
    lines = foreign_lines(language)
    codes = sorted(lines)
    words = {code: [word for line in lines[code] for word in line.split()] for code in codes}
    invent = {code: inventor(words[code]) for code in codes}

    def change(text: str, rng: random.Random) -> str:
        code = rng.choice(codes)
        how = rng.randrange(3)
        if how == 0:
            return rng.choice(lines[code])
        size = _words(text, rng)
        if how == 1:
            return " ".join(rng.choices(words[code], k=size))
        return " ".join(invent[code](rng) for _ in range(size))

    return change


def another_domain(texts: Sequence[str]) -> Change:
    """Some of the words, long ones first, are exchanged for others that look alike and that the texts do not have."""
    invent = inventor([word for text in texts for word in WORD.findall(text)])

    def change(text: str, rng: random.Random) -> str:
        places = [found.span() for found in WORD.finditer(text)]
        share = rng.uniform(*STRANGE)
        likely = sorted(places, key=lambda span: -(span[1] - span[0]) * rng.random())
        for start, end in sorted(likely[: max(1, round(share * len(places)))], reverse=True):
            new = invent(rng)
            text = text[:start] + (new.capitalize() if text[start].isupper() else new) + text[end:]
        return text

    return change


def kinds(texts: Sequence[str], language: str, pieces: Sequence[str] = ()) -> dict[str, Noise]:
    """Every kind of noise, made of these texts of the corpus, which is in this language, and of its vocabulary."""
    return {
        "typos": Noise(typos, keeps_target=True),
        "capitals": Noise(capitals, keeps_target=True),
        "marks": Noise(marks, keeps_target=True),
        "another_domain": Noise(another_domain(texts), keeps_target=True),
        "nonsense": Noise(nonsense(texts, pieces), keeps_target=False),
        "another_language": Noise(another_language(language), keeps_target=False),
    }


def noisy(text: str, noise: Noise, seed: int, epoch: int, place: int) -> str:
    """The source of the pair at `place`, changed; always alike for the same seed, epoch and place."""
    return noise.change(text, random.Random(f"{seed} {epoch} {place}"))


def pick(rates: Mapping[str, float], seed: int, epoch: int, place: int) -> str | None:
    """Which kind of noise the pair at `place` gets in this epoch, at these rates; none: it stays as it is."""
    drawn = random.Random(f"kind {seed} {epoch} {place}").random()
    bounds = list(accumulate(rates.values()))
    kind = bisect(bounds, drawn)
    return None if kind == len(bounds) else list(rates)[kind]


def inventor(words: Sequence[str]) -> Callable[[random.Random], str]:
    """Makes words that look like these: each letter as it may follow the two before it."""
    follows: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        padded = "^" * CONTEXT + word.lower() + "$"
        for end in range(CONTEXT, len(padded)):
            follows[padded[end - CONTEXT : end]].append(padded[end])
    known = {word.lower() for word in words}

    def invent(rng: random.Random) -> str:
        word = ""
        for _ in range(5):  # tries to find one that the words do not have
            word = "^" * CONTEXT
            while len(word) < CONTEXT + LONGEST_WORD:
                letter = rng.choice(follows.get(word[-CONTEXT:]) or ["$"])
                if letter == "$":
                    break
                word += letter
            if len(word) > CONTEXT and word[CONTEXT:] not in known:
                break
        return word[CONTEXT:]

    return invent


def _words(text: str, rng: random.Random) -> int:
    """About as many as the text has."""
    return max(1, len(text.split()) + rng.randint(-1, 1))


def _key_beside(letter: str, text: str, rng: random.Random) -> str:
    """On a keyboard of Latin letters; of another script any letter that the text has."""
    for row in KEYBOARD:
        place = row.find(letter.lower())
        if place >= 0:
            other = row[(place + rng.choice((-1, 1))) % len(row)]
            return other.upper() if letter.isupper() else other
    return rng.choice([other for other in text if other.isalpha()])


def _title(text: str) -> str:
    return WORD.sub(lambda found: found[0][0].upper() + found[0][1:], text)


def _small_start(text: str) -> str:
    return text[:1].lower() + text[1:]


def _bit(word: str, rng: random.Random) -> str:
    start = rng.randrange(len(word))
    return word[start : start + rng.randint(1, 4)]


def _mashed(rng: random.Random) -> str:
    """Neighbouring keys, from left to right or back, or any of one row."""
    row = rng.choice(KEYBOARD)
    size = rng.randint(3, 10)
    if rng.random() < 0.5:
        return "".join(rng.choices(row, k=size))
    start = rng.randrange(len(row) - 2)
    return row[start : start + size][:: rng.choice((1, -1))]


def _shuffled(word: str, rng: random.Random) -> str:
    return "".join(rng.sample(word, len(word)))
