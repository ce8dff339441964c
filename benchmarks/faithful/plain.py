"""Single test sentences: BLEU, and how fast, beside the code of another tree in turn."""

from statistics import median

from benchmarks.faithful.corpora import CORPORA
from benchmarks.faithful.measures import Asked, Found, Row, bleu, signed

MODELS = ("ende", "enzh", "m30k")
ROUNDS = 7
LINES = 1000
SPEED = 0.95


def measure(asked: Asked) -> Found:
    corpus = CORPORA[asked.name]
    pairs = corpus.pairs()
    sources, references = [source for source, _ in pairs], [reference for _, reference in pairs]
    language = corpus.languages[1]
    score = bleu(asked.system.timed(sources)[1], references, language)
    about = f"BLEU of {len(pairs):,} single sentences"
    if asked.before is None:
        return Found([Row(about, f"{score:.2f}")])
    old = bleu(asked.before.timed(sources)[1], references, language)
    some = sources[: asked.many(LINES)]
    asked.before.timed(some)
    each = []
    for turn in range(ROUNDS):
        # The one that is asked first takes turns too.
        pair = [asked.system, asked.before] if turn % 2 else [asked.before, asked.system]
        seconds = {system: system.timed(some)[0] for system in pair}
        each.append((seconds[asked.system], seconds[asked.before]))
    ratios = [theirs / ours for ours, theirs in each]
    speeds = [len(some) / median(side) for side in zip(*each, strict=True)]
    middle = median(ratios)
    return Found(
        [
            Row(f"{about}, against the tree before (not lower)", f"{score:.2f} ({signed(score - old)})", score >= old),
            Row(
                f"speed of {len(some):,} lines, times that of the tree before, {ROUNDS} rounds in turn (at least 0.95)",
                f"{middle:.3f} ({min(ratios):.3f}–{max(ratios):.3f}); {speeds[0]:,.0f} and {speeds[1]:,.0f} lines/s",
                middle >= SPEED,
            ),
        ]
    )
