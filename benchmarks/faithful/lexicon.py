"""Nouns of a corpus and which target words stand for them, by nothing but how often they are in the same pairs."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.faithful.measures import UNSPACED, is_unspaced

DETERMINERS = {
    "the",
    "a",
    "an",
    "my",
    "your",
    "his",
    "her",
    "its",
    "our",
    "their",
    "this",
    "that",
    "these",
    "those",
    "every",
    "each",
    "no",
    "some",
    "any",
}
NO_NOUNS = {
    "other",
    "same",
    "more",
    "one",
    "lot",
    "little",
    "few",
    "most",
    "own",
    "best",
    "first",
    "last",
    "next",
    "only",
    "old",
    "new",
    "good",
    "way",
    "bit",
}
LEAST_DICE = 0.25  # of the best translation of a noun
FORM_DICE = 0.03  # of another form of it
LONGEST = 4  # characters of a Chinese candidate
NO_EDGE = "的了一个個这那我他她你是在有不们吗很"  # of a Chinese candidate that is a noun
SHARE = 0.4  # of a noun's occurrences have a determiner before them


@dataclass(frozen=True)
class Noun:
    """`forms` are singular and plural; `targets` how strongly each target word goes with it, the best first."""

    word: str
    forms: tuple[str, str]
    targets: dict[str, float]


def plural(noun: str) -> str:
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if re.search(r"(s|x|z|ch|sh)$", noun) else f"{noun}s"


def tokens(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", text)


def nouns(train: Sequence[tuple[str, str]], wanted: Sequence[str], language: str) -> dict[str, Noun]:
    """Those that the wanted sources have, by the singular: words with a plural that mostly follow a determiner."""
    sources = [[word.lower() for word in tokens(source)] for source, _ in train]
    counts, determined = Counter[str](), Counter[str]()
    for source in sources:
        for before, word in zip(["", *source], source, strict=False):
            counts[word] += 1
            determined[word] += before in DETERMINERS
    there = {word for text in wanted for word in (one.lower() for one in tokens(text))}
    singulars = [
        word
        for word in counts
        if len(word) > 2
        and word not in NO_NOUNS | DETERMINERS
        and counts[plural(word)] >= 1
        and counts[word] >= 4
        and determined[word] >= SHARE * counts[word]
        and there & {word, plural(word)}
    ]
    of = {form: word for word in singulars for form in (word, plural(word))}
    together: dict[str, Counter[str]] = defaultdict(Counter)
    alone, pairs_of = Counter[str](), Counter[str]()
    for source, (_, target) in zip(sources, train, strict=True):
        others = candidates(target, language)
        alone.update(others)
        for noun in {of[word] for word in source if word in of}:
            pairs_of[noun] += 1
            together[noun].update(others)
    found = {}
    for noun, with_it in together.items():
        dice = {word: 2 * count / (pairs_of[noun] + alone[word]) for word, count in with_it.items()}
        if not dice:
            continue
        best = max(dice, key=lambda word: (round(dice[word], 3), len(word)))
        is_noun = is_unspaced(language) or (len(best) > 2 and (language != "de" or best[0].isupper()))
        if dice[best] >= LEAST_DICE and is_noun:
            targets = {
                word: value for word, value in dice.items() if word == best or _is_form(word, best, value, language)
            }
            in_order = dict(sorted(targets.items(), key=lambda pair: -pair[1]))
            found[noun] = Noun(noun, (noun, plural(noun)), in_order)
    return found


def candidates(target: str, language: str) -> set[str]:
    """Words; of Chinese all that could be one."""
    if not is_unspaced(language):
        return set(tokens(target))
    runs = re.findall(rf"[{UNSPACED}]+", target)
    found = {run[i : i + n] for run in runs for n in range(1, LONGEST + 1) for i in range(len(run) - n + 1)}
    return {one for one in found if one[0] not in NO_EDGE and one[-1] not in NO_EDGE}


def _is_form(word: str, best: str, dice: float, language: str) -> bool:
    """Haus, Hause, Häuser."""
    if is_unspaced(language) or dice < FORM_DICE:
        return False
    short, long = sorted((folded(word), folded(best)), key=len)
    return common(short, long) >= max(3, len(short) - 1) and len(long) - len(short) <= 3


def folded(word: str) -> str:
    return word.lower().translate(str.maketrans("äöü", "aou"))


def common(one: str, other: str) -> int:
    """Letters that both begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
