"""Small tasks whose answers are known: each draws a pair of source and target ids, without special ids."""

import random
from collections.abc import Callable, Sequence

from clearhead.data.dates import held_out_pairs, training_pairs
from clearhead.data.tokenizer import SPECIALS

Pair = tuple[list[int], list[int]]
Task = Callable[[random.Random], Pair]

WORDS = 16
VOCABULARY = SPECIALS + WORDS


def random_words(rng: random.Random, length: int) -> list[int]:
    return [rng.randrange(SPECIALS, VOCABULARY) for _ in range(length)]


def reverse(length: int) -> Task:
    def draw(rng: random.Random) -> Pair:
        words = random_words(rng, length)
        return words, words[::-1]

    return draw


def sort(length: int) -> Task:
    def draw(rng: random.Random) -> Pair:
        words = random_words(rng, length)
        return words, sorted(words)

    return draw


def copy(shortest: int, longest: int) -> Task:
    def draw(rng: random.Random) -> Pair:
        words = random_words(rng, rng.randint(shortest, longest))
        return words, words

    return draw


def unrelated(length: int) -> Task:
    """Targets that have nothing to do with their sources: there is nothing to learn."""
    return lambda rng: (random_words(rng, length), random_words(rng, length))


def middle_word(length: int) -> Task:
    """The one word of another kind than all others; it stands in the middle, as far from both ends as can be."""

    def draw(rng: random.Random) -> Pair:
        words = [rng.randrange(SPECIALS, SPECIALS + WORDS // 2) for _ in range(length)]
        words[length // 2] = rng.randrange(SPECIALS + WORDS // 2, VOCABULARY)
        return words, [words[length // 2]]

    return draw


def noisy(task: Task, share: float) -> Task:
    """The same task with this share of its target words replaced at random."""

    def draw(rng: random.Random) -> Pair:
        source, target = task(rng)
        return source, [random_words(rng, 1)[0] if rng.random() < share else word for word in target]

    return draw


# Commands and actions as in SCAN (Lake & Baroni 2018), of a grammar of our own size.
VERBS = {"walk": "WALK", "run": "RUN", "jump": "JUMP", "look": "LOOK"}
DIRECTIONS = ("left", "right")
TIMES = {"": 1, "twice": 2}
COMMAND_WORDS = [*VERBS, *DIRECTIONS, "around", *[word for word in TIMES if word], "and", "after"]
ACTION_WORDS = [*VERBS.values(), "LEFT", "RIGHT"]
COMMAND_VOCABULARY = SPECIALS + len(COMMAND_WORDS)
ACTION_VOCABULARY = SPECIALS + len(ACTION_WORDS)


def command(rng: random.Random) -> Pair:
    """Such as "walk left after jump twice": JUMP JUMP LEFT WALK."""
    words, actions = _phrase(rng)
    joint = rng.choice(("", "and", "after"))
    if joint:
        more, more_actions = _phrase(rng)
        words = [*words, joint, *more]
        actions = actions + more_actions if joint == "and" else more_actions + actions
    return [SPECIALS + COMMAND_WORDS.index(word) for word in words], [
        SPECIALS + ACTION_WORDS.index(action) for action in actions
    ]


def _phrase(rng: random.Random) -> tuple[list[str], list[str]]:
    verb, times = rng.choice(list(VERBS)), rng.choice(list(TIMES))
    way = rng.choice(("", *DIRECTIONS))
    is_around = bool(way) and rng.random() < 0.5
    words = [verb, *(["around"] if is_around else []), *([way] if way else []), *([times] if times else [])]
    once = ([way.upper()] if way else []) + [VERBS[verb]]
    return words, once * (2 if is_around else 1) * TIMES[times]


def date_task(pairs: Sequence[tuple[str, str]], source: str, target: str) -> Task:
    """One of the pairs of texts, character by character; `source` and `target` are the alphabets."""

    def draw(rng: random.Random) -> Pair:
        english, chinese = rng.choice(pairs)
        return _ids(english, source), _ids(chinese, target)

    return draw


def date_pairs() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Those to learn from and those held out."""
    return training_pairs(), held_out_pairs()


def alphabet(texts: Sequence[str]) -> str:
    return "".join(sorted(set("".join(texts))))


def _ids(text: str, letters: str) -> list[int]:
    return [SPECIALS + letters.index(letter) for letter in text]
