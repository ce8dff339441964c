"""Texts of several test sentences: are they translated as well as the sentences alone, and is all of it there?"""

import random
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.faithful.corpora import CORPORA, FINAL, draw_texts
from benchmarks.faithful.left_out import left_out, there
from benchmarks.faithful.measures import (
    EXAMPLES,
    Asked,
    Example,
    Found,
    Row,
    bleu,
    is_unspaced,
    join,
    share,
    signed,
    words,
)
from benchmarks.faithful.system import Said

MODELS = ("ende", "enzh", "m30k")
TEXTS, FEWEST, MOST = 500, 2, 10
WIDTH = 60  # of wrapped lines, in characters
DROP, BARE_DROP = 0.5, 3.0  # BLEU
SILENT = 1 / 1000  # of the sentences, at most
SAYING = ("left_out", "cut_off")  # the warnings that count
NAMED = 0.5  # of a sentence's words are in what a warning names


def bare(sentence: str) -> str:
    return FINAL.sub("", sentence)


FORMS: dict[str, Callable[[str], str]] = {
    "spaces": str,
    "wrapped": str,
    "unmarked": bare,
    "lower": str.lower,
    "bare": lambda one: bare(one).lower(),
}
CALLED = {
    "spaces": "joined by spaces",
    "wrapped": f"wrapped at {WIDTH} characters",
    "unmarked": "without final marks",
    "lower": "in lower case",
    "bare": "without final marks and in lower case",
}


@dataclass
class Counts:
    """Sentences of all texts of one form."""

    sentences: int = 0
    lost: int = 0
    silent: int = 0
    warned_for_nothing: int = 0  # texts


def measure(asked: Asked) -> Found:
    corpus = CORPORA[asked.name]
    language = corpus.languages[1]
    pairs = corpus.pairs()
    texts = draw_texts(pairs, asked.many(TEXTS), FEWEST, MOST, asked.seed)
    used = sorted({one for text in texts for one in text})
    found = Found()
    own = dict(zip(used, asked.system.translate([pairs[one][0] for one in used]), strict=True))
    references = [join([pairs[one][1] for one in text], language) for text in texts]
    alone = bleu([join([own[one].text for one in text], language) for text in texts], references, language)
    found.rows.append(Row(f"BLEU of the {len(used):,} sentences alone, joined to {len(texts):,} texts", f"{alone:.2f}"))
    found.rows += judged(texts, pairs, {one: said.text for one, said in own.items()}, language)
    worst: list[tuple[float, Example]] = []
    for form, change in FORMS.items():
        given = [written([change(pairs[one][0]) for one in text], form, corpus.languages[0]) for text in texts]
        said = asked.system.translate(given)
        score = bleu([one.text for one in said], references, language)
        limit = DROP if form in ("spaces", "wrapped") else BARE_DROP
        found.rows.append(
            Row(
                f"BLEU {CALLED[form]}, against alone (at most {limit:g} lower)",
                f"{score:.2f} ({signed(score - alone)})",
                score >= alone - limit,
            )
        )
        if form not in ("spaces", "wrapped"):
            changed = asked.system.translate([change(pairs[one][0]) for one in used])
            same = {one: said.text for one, said in zip(used, changed, strict=True)}
            alike = bleu([join([same[one] for one in text], language) for text in texts], references, language)
            found.rows.append(Row(f"the sentences {CALLED[form]}, alone", f"{alike:.2f} ({signed(alike - alone)})"))
        else:
            same = {one: said.text for one, said in own.items()}
        counts = Counts()
        for text, source, one in zip(texts, given, said, strict=True):
            worst += judge_text(form, source, one, text, pairs, same, counts)
        found.rows += [
            Row(
                f"left out without a warning, {CALLED[form]} (at most 1 in 1,000)",
                share(counts.silent, counts.sentences),
                counts.silent <= SILENT * counts.sentences,
            ),
            Row(
                f"left out at all, {CALLED[form]}",
                f"{share(counts.lost, counts.sentences)}; {counts.warned_for_nothing:,} texts warned for nothing",
            ),
        ]
    worst.sort(key=lambda pair: -pair[0])
    found.examples = spread_out([example for _, example in worst])
    return found


def written(sentences: Sequence[str], form: str, language: str) -> str:
    """One text of them."""
    if is_unspaced(language):
        return "".join(sentences)
    text = " ".join(sentences)
    if form == "wrapped":
        return "\n".join(textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False))
    return text


def judge_text(
    form: str,
    source: str,
    said: Said,
    text: Sequence[int],
    pairs: Sequence[tuple[str, str]],
    own: dict[int, str],
    counts: Counts,
) -> list[tuple[float, Example]]:
    """Adds to the counts; examples of what was lost without a word, the most sentences first."""
    lost = left_out(said.text, [own[one] for one in text], [pairs[one][1] for one in text])
    silent = [place for place in lost if not is_named(pairs[text[place]][0], said)]
    counts.sentences += len(text)
    counts.lost += len(lost)
    counts.silent += len(silent)
    counts.warned_for_nothing += bool(not lost and set(SAYING) & set(said.warnings))
    if not silent:
        return []
    what = f"{CALLED[form]}: {len(silent)} of {len(text)} sentences, such as {pairs[text[silent[0]]][0]!r}"
    return [(len(silent) + (form == "spaces"), Example(what, source, said.text, said.warnings))]


def is_named(sentence: str, said: Said) -> bool:
    """Whether a warning says that this sentence is not there: by its words, if the warning has any."""
    for kind in SAYING:
        if kind in said.warnings:
            parts = said.details.get(kind, [])
            if not parts or any(there([words(sentence)], words(part))[0] >= NAMED for part in parts):
                return True
    return False


def judged(
    texts: Sequence[Sequence[int]], pairs: Sequence[tuple[str, str]], own: dict[int, str], language: str
) -> list[Row]:
    """How well the judge finds what was dropped on purpose, and how often it sees a loss where there is none."""
    chance = random.Random("drops")
    easy = hard = false = 0
    for text in texts:
        gone = chance.randrange(len(text))
        kept = [one for place, one in enumerate(text) if place != gone]
        mine, theirs = [own[one] for one in text], [pairs[one][1] for one in text]
        easy += gone in left_out(join([own[one] for one in kept], language), mine, theirs)
        # Every other sentence worded as the reference words it, so that many of the judge's words are not there.
        hard += gone in left_out(join([pairs[one][1] for one in kept], language), mine, mine)
        false += len(left_out(join(theirs, language), mine, mine))
    sentences = sum(map(len, texts))
    return [
        Row("the judge: planted drops found, the rest worded as alone", share(easy, len(texts))),
        Row("the judge: planted drops found, the rest reworded", share(hard, len(texts))),
        Row(
            "the judge: sentences that would be lost if worded as in the reference, and that is not known",
            share(false, sentences),
        ),
    ]


def spread_out(examples: list[Example]) -> list[Example]:
    """The first of each kind before the second of any, as far as there is room."""
    kinds: dict[str, int] = {}
    ranks = []
    for example in examples:
        kind = example.what.split(":")[0]
        kinds[kind] = kinds.get(kind, 0) + 1
        ranks.append(kinds[kind])
    order = sorted(range(len(examples)), key=lambda i: (ranks[i], i))[:EXAMPLES]
    return [examples[i] for i in sorted(order)]
