"""A glossary of 300 terms, nouns of the tests in singular and plural: is each term where the word's translation was?

The rule, for a noun once in a sentence. Its old word is the one that the corpus' lexicon knows among the words of the
translation without a glossary. The term is in the right place if it is there as often as the noun, is not glued to
anything (behind it only an inflection), the old word is gone, and at one of its sides it has the neighbour (a word, a
mark or the edge of the text; articles and endings may differ) that the old word had in the translation without a
glossary, or that its own translation has in the reference.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.faithful.corpora import CORPORA
from benchmarks.faithful.lexicon import Noun, common, nouns, tokens
from benchmarks.faithful.measures import UNSPACED, Asked, Example, Found, Row, bleu, is_unspaced, share, signed
from benchmarks.faithful.segments import spread_out
from benchmarks.faithful.system import Said

MODELS = ("ende", "enzh", "m30k")
TERMS, EACH = 300, 4  # and sentences of each, at most
RIGHT = 0.97
FLAG = "glossary_missed"
ENDINGS = ("", "e", "n", "s", "en", "es", "er", "em", "ern", "ns", "nen")
ARTICLES = ("d", "ein", "kein", "mein", "dein", "sein", "ihr", "unser", "euer", "eur", "dies", "jed", "jen", "manch")
ARTICLE = re.compile(rf"(der|die|das|den|dem|des)|({'|'.join(ARTICLES[1:])})(e[nmrs]?)?")
OPENING = " \u00a0\n\t(„“\"'»«‚‘[-–/"


@dataclass(frozen=True)
class Case:
    """A noun in a sentence, and what its translation has to be."""

    kind: str  # invented, existing, own
    noun: Noun
    form: str  # as the sentence has it
    term: str
    source: str
    reference: str


def measure(asked: Asked) -> Found:
    corpus = CORPORA[asked.name]
    language = corpus.languages[1]
    train = corpus.pairs("train")
    pairs = [pair for pair in corpus.pairs(*corpus.tests, "valid") if len(pair[0].split()) <= 25]
    known = nouns(train, [source for source, _ in pairs], language)
    cases = draw(known, train, pairs, asked.many(TERMS), language, asked.seed)
    plain = dict(zip(texts := sorted({case.source for case in cases}), asked.system.translate(texts), strict=True))
    found, examples = Found(), []
    right: dict[str, int] = {}
    of: dict[str, int] = {}
    silent = unsaid = flagged = plurals = good_plurals = 0
    given = said_of(asked, cases)
    for case, said in zip(cases, given, strict=True):
        fault = misplaced(case, plain[case.source].text, said.text, language)
        is_flagged = FLAG in said.warnings
        of[case.kind] = of.get(case.kind, 0) + 1
        right[case.kind] = right.get(case.kind, 0) + (not fault)
        is_missing = bool(fault) and (not term_places(case.term, said.text, language) or "glued" in fault)
        silent += bool(fault) and not is_flagged
        unsaid += is_missing and not is_flagged
        flagged += is_flagged and not fault
        plurals += case.form != case.noun.word
        good_plurals += case.form != case.noun.word and not fault
        if fault:
            what = f"{case.kind}: {case.form} → {case.term}: {fault}"
            example = Example(what, case.source, f"{said.text} — without: {plain[case.source].text}", said.warnings)
            examples.append((is_flagged, example))
    good = sum(right.values())
    terms = len({(case.noun.word, case.kind) for case in cases})
    found.rows = [
        Row(
            f"in the right place, {terms} terms in {len(cases):,} sentences (at least 97 %)",
            share(good, len(cases)),
            good >= RIGHT * len(cases),
        ),
        Row(f"not in the right place, without `{FLAG}` (none)", share(silent, len(cases)), not silent),
        Row(f"of these: not there at all, or glued, without `{FLAG}`", share(unsaid, len(cases))),
        Row(f"in the right place, but `{FLAG}`", share(flagged, len(cases))),
        Row("plurals in the right place", share(good_plurals, plurals)),
        *(Row(f"{kind} terms in the right place", share(right[kind], of[kind])) for kind in of),
    ]
    own = [place for place, case in enumerate(cases) if case.kind == "own"]
    references = [cases[place].reference for place in own]
    with_terms = bleu([given[place].text for place in own], references, language)
    without = bleu([plain[cases[place].source].text for place in own], references, language)
    found.rows.append(
        Row(
            "BLEU with the references' own words as terms, against without (not lower)",
            f"{with_terms:.2f} ({signed(with_terms - without)})",
            with_terms >= without,
        )
    )
    found.examples = spread_out([example for _, example in sorted(examples, key=lambda pair: pair[0])])
    return found


def said_of(asked: Asked, cases: Sequence[Case]) -> list[Said]:
    """Invented and existing terms are one glossary; the references' own words one for each form of a noun."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, case in enumerate(cases):
        groups.setdefault((case.noun.word, case.term) if case.kind == "own" else ("", ""), []).append(place)
    said: dict[int, Said] = {}
    for places in groups.values():
        glossary = sorted({(cases[place].noun.word, cases[place].term) for place in places})
        found = asked.system.translate([cases[place].source for place in places], glossary)
        said |= dict(zip(places, found, strict=True))
    return [said[place] for place in range(len(cases))]


# -- drawing -----------------------------------------------------------------------------------------------------------


def draw(
    known: dict[str, Noun],
    train: Sequence[tuple[str, str]],
    pairs: Sequence[tuple[str, str]],
    many: int,
    language: str,
    seed: int,
) -> list[Case]:
    """A third of the nouns with an invented term, with another noun's word, and with the references' own words."""
    chance = random.Random(f"terms {seed}")
    sentences: dict[str, list[tuple[str, str, str]]] = {}
    of = {form: noun for noun in known.values() for form in noun.forms}
    for source, reference in pairs:
        there = [word for word in tokens(source) if word.lower() in of]
        for form in there:
            noun = of[form.lower()]
            once = sum(of[word.lower()] is noun for word in there) == 1
            if once and form.islower() and places_of(noun, reference, language):
                sentences.setdefault(noun.word, []).append((form, source, reference))
    usable = sorted(sentences, key=lambda word: (-min(2, len(sentences[word])), word))
    several = [word for word in usable if len(sentences[word]) > 1]
    chosen = chance.sample(several, min(many, len(several)))
    chosen += [word for word in usable if word not in several][: many - len(chosen)]
    text = "\n".join(target for _, target in train)
    others = sorted({next(iter(noun.targets)) for noun in known.values()})
    cases = []
    for turn, word in enumerate(chosen):
        noun, kind = known[word], ("invented", "existing", "own")[turn % 3]
        term = (
            invented(chance, text, language)
            if kind == "invented"
            else chance.choice(
                [
                    other
                    for other in others
                    if other not in noun.targets and (is_unspaced(language) or other[0].isupper())
                ]
            )
        )
        some = sentences[word]
        chance.shuffle(some)
        some.sort(key=lambda one: one[0] == word)  # the plurals first: they are fewer
        for form, source, reference in some[:EACH]:
            own = places_of(noun, reference, language)[0]
            cases.append(Case(kind, noun, form, reference[slice(*own)] if kind == "own" else term, source, reference))
    return cases


def invented(chance: random.Random, text: str, language: str) -> str:
    """A word that the corpus does not have."""
    while True:
        if is_unspaced(language):
            word = "".join(chance.choice("山水木石金玉云龙鱼花星月海田竹") for _ in range(chance.choice((2, 3))))
        else:
            syllables = [
                chance.choice(["b", "br", "d", "f", "g", "k", "kr", "l", "m", "p", "pl", "st", "t", "tr", "w"])
                + chance.choice("aeiou")
                for _ in range(2)
            ]
            word = "".join(syllables).capitalize() + chance.choice(["l", "m", "n", "ck", "rt", "x"])
        if word not in text:
            return word


# -- the judge ---------------------------------------------------------------------------------------------------------


def misplaced(case: Case, plain: str, said: str, language: str) -> str:
    """What is wrong with the term in a translation; nothing if it is in the right place."""
    places = term_places(case.term, said, language)
    if not places:
        return "the term is not there" if case.term not in said else "the term is glued to something"
    loose = said.count(case.term)
    old = places_of(case.noun, plain, language)
    own = any(plain[slice(*place)] == case.term for place in old)
    most = max(1, len(term_places(case.term, plain, language)) + (not own))
    if len(places) > most or loose > len(places):
        return "the term is there too often" if len(places) > most else "the term is glued to something"
    left = [said[slice(*place)] for place in places_of(case.noun, said, language) if place not in places]
    if len(left) > max(0, len(old) - 1) and not own:
        return f"{left[0]} is still there"
    before = [(plain, place) for place in old] + [
        (case.reference, place) for place in places_of(case.noun, case.reference, language)
    ]
    if any(is_beside(said, place, text, other, language) for place in places for text, other in before):
        return ""
    return "no neighbour is the old word's"


def term_places(term: str, text: str, language: str) -> list[tuple[int, int]]:
    """Where it stands as a word of its own, inflected or not."""
    found = []
    for match in re.finditer(re.escape(term), text):
        if is_unspaced(language):
            found.append(match.span())
            continue
        before, rest = text[: match.start()][-1:], re.match(r"\w*", text[match.end() :])
        ending = rest[0] if rest else ""
        if before in OPENING and ending in ENDINGS:
            found.append((match.start(), match.end() + len(ending)))
    return found


def places_of(noun: Noun, text: str, language: str) -> list[tuple[int, int]]:
    """Where the words stand that translate the noun, by the lexicon, the surest first."""
    if is_unspaced(language):
        best = next(iter(noun.targets))
        return [match.span() for match in re.finditer(re.escape(best), text)]
    found = [match.span() for match in re.finditer(r"[^\W\d_]+(?:-[^\W\d_]+)*", text) if match[0] in noun.targets]
    return sorted(found, key=lambda place: -noun.targets[text[slice(*place)]])


def is_beside(text: str, place: tuple[int, int], other: str, old: tuple[int, int], language: str) -> bool:
    """Whether one of the two neighbours is the same."""
    mine, theirs = neighbours(text, place, language), neighbours(other, old, language)
    return any(is_alike(one, another) for one, another in zip(mine, theirs, strict=True))


def neighbours(text: str, place: tuple[int, int], language: str) -> tuple[str, str]:
    """The word or mark before and after; nothing at an edge."""
    piece = rf"[{UNSPACED}]|\w+|[^\w\s]" if is_unspaced(language) else r"\w+|[^\w\s]"
    before, after = re.findall(piece, text[: place[0]]), re.findall(piece, text[place[1] :])
    return (before[-1] if before else ""), (after[0] if after else "")


def is_alike(one: str, other: str) -> bool:
    """The same, an article in another gender, or another ending."""
    a, b = one.lower(), other.lower()
    first, second = ARTICLE.fullmatch(a), ARTICLE.fullmatch(b)
    if first and second:
        return (first[2] or "d") == (second[2] or "d")
    return a == b or (min(len(a), len(b)) > 3 and common(a, b) >= max(len(a), len(b)) - 2)
