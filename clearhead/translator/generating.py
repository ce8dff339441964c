"""Text that goes on: what a model without a source says after a beginning that it is given."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clearhead.decoding import DecodingOptions, Demand
from clearhead.errors import USAGE, UserError

from .tasks import require_task
from .translation import Decoded, Translation
from .translator import Translator, load

LENGTH = 120  # tokens that are written


def load_generator(path: Path) -> Translator:
    """The model in a run folder or a model folder, if it was trained to continue text."""
    translator = load(path, engine="native")
    require_task(translator.task, "generate")
    return translator


def generate(
    translator: Translator, prompts: str | Sequence[str], options: DecodingOptions, length: int = LENGTH
) -> list[list[Translation]]:
    """For each prompt the n best continuations, or as many samples; the text includes the prompt."""
    prompts = [prompts] if isinstance(prompts, str) else prompts
    given = translator.target_tokenizer.encode_many(prompts)
    demands = [Demand(prefix=ids, max_length=len(ids) + length) for ids in given]
    found = translator.engine.translate([[] for _ in prompts], options, demands)
    decode = translator.target_tokenizer.decode
    return [
        [Translation(decode(h.tokens), h.score, decoded=(Decoded([], h.tokens),)) for h in hypotheses]
        for hypotheses in found
    ]


def sampling(
    own: DecodingOptions, temperature: float, top_p: float, top_k: int, samples: int, seed: int
) -> DecodingOptions:
    """A temperature of 0 takes the likeliest word each time."""
    try:
        if temperature == 0:
            return replace(own, temperature=None, beam=max(samples, 1), n_best=samples)
        return replace(own, temperature=temperature, top_p=top_p, top_k=top_k, n_best=samples, seed=seed)
    except ValueError as error:
        raise UserError("OPTIONS", f"{error}; correct it and try again", USAGE) from error
