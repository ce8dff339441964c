"""How surprised a model is by text that it has not seen: perplexity per token, and bits per character."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clearhead.data.corpus import Report
from clearhead.data.options import DataOptions
from clearhead.data.texts import read_texts
from clearhead.errors import BAD_DATA, UserError
from clearhead.options import from_dict
from clearhead.progress import progress
from clearhead.translator.generating import load_generator

AT_ONCE = 256  # stretches of text


@dataclass(frozen=True)
class Surprise:
    """Of a whole text, cut into the stretches that models are trained on."""

    model: str
    texts: int
    tokens: int  # the ends counted
    characters: int
    perplexity: float
    bits_per_character: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        return [
            f"{self.model}: {self.texts:,} stretches of text, {self.tokens:,} tokens, {self.characters:,} characters",
            f"  perplexity          {self.perplexity:8.2f}  per token",
            f"  bits per character  {self.bits_per_character:8.3f}",
        ]


def surprise(model: Path, files: Sequence[Path]) -> Surprise:
    """Over all of the files' text."""
    translator = load_generator(model)
    options = from_dict(DataOptions, translator.config["data"], "data")
    texts = [pair.target for pair in read_texts(files, Report(), options)]
    if not texts:
        raise UserError("NOTHING_LEFT", f"there is no text in {', '.join(map(str, files))}", BAD_DATA)
    total, tokens = 0.0, 0
    with progress("scoring") as bar:
        for start in range(0, len(texts), AT_ONCE):
            some = texts[start : start + AT_ONCE]
            targets = translator.target_tokenizer.encode_many(some)
            scores = translator.engine.score([[]] * len(targets), targets)
            total += sum(sum(row) for row in scores)
            tokens += sum(len(row) for row in scores)
            bar.update(start + len(some), len(texts), "stretches")
    characters = sum(len(text) + 1 for text in texts)
    bits = -total / math.log(2) / characters
    return Surprise(str(model), len(texts), tokens, characters, math.exp(-total / tokens), bits)
