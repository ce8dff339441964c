"""Numbers of all kinds in test sentences: is each in the translation, by value and as the language writes it?"""

from collections import Counter

from benchmarks.faithful.corpora import CORPORA
from benchmarks.faithful.measures import Asked, Example, Found, Row, share
from benchmarks.faithful.segments import spread_out
from benchmarks.faithful.slots import draw
from benchmarks.faithful.values import judge

MODELS = ("ende", "enzh", "m30k")
NUMBERS = 2000
RIGHT = 0.995
FLAG = "number_changed"


def measure(asked: Asked) -> Found:
    corpus = CORPORA[asked.name]
    language = corpus.languages[1]
    drawn = draw([source for source, _ in corpus.pairs()], asked.many(NUMBERS), asked.seed)
    said = asked.system.translate([one.text for one in drawn])
    wrong, silent, of, false = Counter[str](), Counter[str](), Counter[str](), 0
    worst: list[tuple[int, Example]] = []
    for one, translation in zip(drawn, said, strict=True):
        kind = one.wanted.kind
        fault = judge(one.wanted, one.text, translation.text, language)
        is_flagged = FLAG in translation.warnings
        of[kind] += 1
        wrong[kind] += bool(fault)
        silent[kind] += bool(fault) and not is_flagged
        false += is_flagged and not fault
        if fault:
            example = Example(f"{kind}: {fault}", one.text, translation.text, translation.warnings)
            worst.append((is_flagged, example))
    right = len(drawn) - wrong.total()
    found = Found(
        [
            Row("numbers right (at least 99.5 %)", share(right, len(drawn)), right >= RIGHT * len(drawn)),
            Row(f"wrong without `{FLAG}` (none)", share(silent.total(), len(drawn)), not silent.total()),
            Row(f"right, but `{FLAG}`", share(false, right)),
        ]
    )
    for kind in of:
        found.rows.append(
            Row(f"{kind}: wrong; of these without `{FLAG}`", f"{wrong[kind]} of {of[kind]}; {silent[kind]}")
        )
    found.examples = spread_out([example for _, example in sorted(worst, key=lambda pair: pair[0])])
    return found
