"""Real paragraphs: lines of help-en-de with several sentences, against each as one source of the engine."""

import re

from benchmarks.faithful.corpora import CORPORA
from benchmarks.faithful.measures import Asked, Found, Row, bleu, signed

MODELS = ("help", "ende")
BETWEEN = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)[.!?][\"')]*\s+(?=[\"'(]*[A-Z0-9])")


def measure(asked: Asked) -> Found:
    pairs = [pair for pair in CORPORA["help"].pairs() if several(pair[0])]
    pairs = pairs[: asked.many(len(pairs))]
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    said = bleu([one.text for one in asked.system.translate(sources)], references, "de")
    whole = bleu(asked.system.whole(sources), references, "de")
    about = f"of {len(pairs):,} paragraphs of help-en-de"
    return Found(
        [
            Row(f"BLEU {about}, each line as one source", f"{whole:.2f}"),
            Row(f"BLEU {about} (not lower)", f"{said:.2f} ({signed(said - whole)})", round(said - whole, 2) >= 0),
        ]
    )


def several(text: str) -> bool:
    return bool(BETWEEN.search(text))
